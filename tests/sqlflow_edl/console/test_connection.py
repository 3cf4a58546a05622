"""The session of a console, opened in a thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edl.errors import SourceError
from sqlflow_edl.console.connection import ConsoleConnection, UnopenedError
from sqlflow_edl.session.observer import Observer
from sqlflow_edl.session.session import Session


def test_the_session_opens_when_it_is_asked_for() -> None:
    connection = ConsoleConnection(lambda source, observer: Session(source), "sqlite::memory:")
    assert connection.dialect == "duckdb"
    with connection.session() as session:
        assert session.dialect == connection.dialect == "sqlite"
    connection.close()


def test_what_is_noted_at_the_opening_is_kept() -> None:
    def opener(source: str, observer: Observer) -> Session:
        observer.note("a job had finished")
        return Session(source)

    connection = ConsoleConnection(opener, "duckdb:")
    with connection.session():
        assert connection.notes == ["a job had finished"]
    connection.close()


def test_an_unknown_dialect_is_an_error_of_the_opening() -> None:
    connection = ConsoleConnection(lambda source, observer: Session(source, dialect="duckbd"), "duckdb:")
    with pytest.raises(UnopenedError, match="unknown SQL dialect"), connection.session():
        pass
    connection.close()


def test_a_defect_of_ours_is_raised_as_it_is() -> None:
    def opener(source: str, observer: Observer) -> Session:
        raise ZeroDivisionError

    connection = ConsoleConnection(opener, "duckdb:")
    with pytest.raises(ZeroDivisionError), connection.session():
        pass


def test_columns_are_asked_for_once() -> None:
    connection = ConsoleConnection(lambda source, observer: Session(source), "duckdb:")
    with connection.session() as session:
        list(session.run("CREATE TABLE t (a INT, b INT)"))
    assert connection.columns("t") == ("a", "b")
    with connection.session() as session:
        list(session.run("ALTER TABLE t DROP COLUMN b"))
    assert connection.columns("t") == ("a", "b")
    connection.refresh()
    connection.get_catalog(None)
    assert connection.columns("t") == ("a",)
    connection.close()


@pytest.mark.soak
def test_a_database_that_refuses_leaves_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = ConsoleConnection(lambda source, observer: Session(source), "duckdb:")
    with connection.session() as session:
        list(session.run("CREATE TABLE t (a INT)"))
        connection.catalog.look(session)

        def refuse() -> list[str]:
            raise SourceError("the server is away")

        monkeypatch.setattr(session.source, "tables", refuse)
    connection.refresh()
    assert connection.get_catalog(None).tables == ("t",)
    connection.close()


def is_open_here(path: Path) -> bool:
    """Return True if another process cannot open the database."""
    program = "import duckdb, sys; duckdb.connect(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, check=False)
    return done.returncode != 0


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("keeps", "ends"),
    [
        ("BEGIN; INSERT INTO t VALUES (2)", "COMMIT"),
        ("CREATE TEMP TABLE u AS SELECT 1 AS x", ""),
        ("SET threads = 1", ""),
    ],
)
def test_other_processes_may_open_the_file_unless_the_session_has_a_state(
    keeps: str, ends: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.duckdb"
    connection = ConsoleConnection(lambda source, observer: Session(source, create=True), f"duckdb:///{path}")
    with connection.session() as session:
        list(session.run("CREATE TABLE t AS SELECT 1 AS x"))
        assert is_open_here(path)
    assert not is_open_here(path)
    with connection.session() as session:
        list(session.run(keeps))
    assert is_open_here(path)
    with connection.session() as session:
        list(session.run(ends))
        [result] = session.run("SELECT count(*) AS n FROM t")
        assert result.to_arrow().to_pylist() == [{"n": 2 if ends else 1}]
    assert is_open_here(path) == (not ends)
    connection.close()


def test_a_file_that_another_process_has_open_is_an_error_of_the_statement_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    connection = ConsoleConnection(lambda source, observer: Session(source, create=True), f"duckdb:///{path}")
    with connection.session() as session:
        list(session.run("CREATE TABLE t AS SELECT 1 AS x"))
    program = "import duckdb, sys; opened = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with connection.session() as session, pytest.raises(SourceError, match=f"{other.pid}"):
            list(session.run("SELECT * FROM t"))
        assert other.stdin is not None
        other.stdin.close()
    with connection.session() as session:
        [result] = session.run("SELECT * FROM t")
        assert result.to_arrow().num_rows == 1
    connection.close()


def test_the_rows_of_files_are_read_again_after_the_release(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x;y\n1;a\n2;b\n")
    connection = ConsoleConnection(lambda source, observer: Session(source), str(tmp_path / "t.csv"))
    for _ in range(2):
        with connection.session() as session:
            [result] = session.run("SELECT count(*) AS n FROM 't.csv'")
            assert result.to_arrow().to_pylist() == [{"n": 2}]
        assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]
    connection.close()
