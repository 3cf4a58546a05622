"""TO RUN: programs over the rows of a query, their results, and what is left of them when they fail."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sqlflow_edl
from edl.errors import JobError, SemanticError, Span, SQLFlowError
from edl.jobs import job_folder
from edl.jobs.events import Output
from edl.run import containers
from sqlflow_edl.cli.program.parallel import Interruption, Watcher
from sqlflow_edl.display.narrator import Narrator, ProgramStep
from sqlflow_edl.extensions.notebook.live import Live
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session
from tests.databases import on_each
from tests.engine import write_engine
from tests.sql_cases import FIXTURES, Case, cases, refusal

SOLD = """
CREATE TABLE sold (id INT, item VARCHAR(20), price FLOAT);
INSERT INTO sold VALUES (1, 'bolt', 0.5), (2, 'nut', 1.5), (3, 'bolt', 2.5), (4, 'größe 😀', NULL)
"""
TOTALS = "SELECT * FROM sold ORDER BY id TO RUN totals.py CMD '--a b', \"c;d\" INTO totals, cheap"


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLFLOW_MODEL_PATH", str(FIXTURES / "runnables"))
    monkeypatch.setattr(containers, "ENGINES", ())


class Listener(Silent):
    """Keeps what is printed; interrupts a program that waits."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def progress(self, event: object) -> None:
        if isinstance(event, Output):
            self.lines += event.lines
        if self.lines and self.lines[-1].startswith("waits"):
            raise KeyboardInterrupt


@pytest.fixture
def session() -> Iterator[Session]:
    with sqlflow_edl.connect("duckdb:") as opened:
        opened.observer = Listener()
        list(opened.run(SOLD))
        yield opened


def rows(session: Session, query: str) -> list[dict[str, object]]:
    [result] = session.run(query)
    return result.to_arrow().to_pylist()


def staged(session: Session) -> object:
    """The number of tables that hold results before they are swapped in."""
    [row] = rows(
        session,
        "SELECT count(*) AS n FROM duckdb_tables() WHERE table_name LIKE 'sqlflow_edl_stage!_%' ESCAPE '!'",
    )
    return row["n"]


@on_each("url", always=("duckdb", "mysql"))
def test_a_program_reads_the_rows_and_writes_tables(url: str) -> None:
    listener = Listener()
    with sqlflow_edl.connect(url) as session:
        session.observer = listener
        list(session.run(SOLD))
        [result] = session.run(TOTALS)
        assert rows(session, "SELECT * FROM totals ORDER BY item") == [
            {"item": "bolt", "sales": 2},
            {"item": "größe 😀", "sales": 1},
            {"item": "nut", "sales": 1},
        ]
        assert rows(session, "SELECT * FROM cheap ORDER BY id") == [
            {"id": 1, "item": "bolt", "half": 0.25},
            {"id": 2, "item": "nut", "half": 0.75},
        ]
    assert result.message == "totals.py wrote 3 rows to totals and 2 rows to cheap"
    assert listener.lines == ["2 cheap rows, for ['--a b', 'c;d']"]


@pytest.mark.soak
def test_tables_may_be_in_several_files(session: Session, tmp_path: Path) -> None:
    list(session.run(f"ATTACH '{tmp_path}/other.duckdb' AS other"))
    [result] = session.run("SELECT * FROM sold TO RUN twice.py INTO bought, other.bought")
    assert result.rows == 8
    assert rows(session, "SELECT * FROM bought") == rows(session, "SELECT * FROM other.bought")
    assert staged(session) == 0


def test_a_program_that_fails_leaves_the_tables_as_they_were(session: Session) -> None:
    list(session.run(TOTALS))
    before = rows(session, "SELECT * FROM totals")
    with pytest.raises(JobError) as raised:
        list(session.run("SELECT * FROM sold TO RUN failing.py INTO totals, more"))
    assert raised.value.message == "failing.py ended with exit code 1: LookupError: no more prices"
    assert raised.value.span == Span(26, 36)
    assert "half is done" in str(raised.value.hint)
    assert rows(session, "SELECT * FROM totals") == before
    assert "more" not in session.source.tables()
    assert staged(session) == 0
    job = job_folder.jobs()[-1]
    assert job.status().state == "failed"
    assert "no more prices" in (job.logs / "program.log").read_text()
    assert not list(job.results.rglob("*.arrow"))


@pytest.mark.soak
def test_a_table_that_a_program_does_not_write_is_an_error(session: Session) -> None:
    with pytest.raises(JobError, match="ended without rows for other, so nothing was stored"):
        list(session.run(f"{TOTALS}, other"))
    assert session.source.tables() == ["sold"]


def test_an_interrupt_ends_a_program_with_the_processes_that_it_started(session: Session) -> None:
    with pytest.raises(KeyboardInterrupt):
        list(session.run("SELECT * FROM sold TO RUN waiting.py"))
    assert job_folder.jobs()[-1].status().state == "cancelled"
    pid = int(session.observer.lines[-1].split()[-1])  # type: ignore[attr-defined]
    found = Path(f"/proc/{pid}/stat")
    assert not found.exists() or found.read_text().split()[2] == "Z", "its parent is the one to reap it"


@pytest.mark.variants(1)
@pytest.mark.parametrize("program", ["waiting.py", "silent.py"])
def test_a_program_that_has_not_ended_at_its_deadline_is_ended_and_stores_nothing(program: str) -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        list(session.run(SOLD))
        session._deadline = 0.5
        with pytest.raises(JobError, match=rf"{program} did not end before its deadline of 0.5 s"):
            list(session.run(f"SELECT * FROM sold TO RUN {program} INTO t"))
        assert session.source.tables() == ["sold"]
    assert job_folder.jobs()[-1].status().state == "failed"


def test_a_program_ends_with_the_process_that_wants_its_results() -> None:
    reading, lifeline = os.pipe()
    program = str(FIXTURES / "runnables" / "waiting.py")
    command = [sys.executable, "-m", "edl.entrypoints.runnable", str(reading), program]
    with subprocess.Popen(
        command, pass_fds=(reading,), stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline().startswith(b"waits")
        os.close(lifeline)
        assert process.wait(20) == -signal.SIGKILL
    os.close(reading)


@pytest.mark.soak
def test_rows_without_a_table_are_a_result_set(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLFLOW_MODEL_PATH", str(tmp_path))
    (tmp_path / "by-name").mkdir()
    (tmp_path / "by-name" / "first.py").write_text(
        "from edl.runnable import rows, write\nwrite(rows(['item']))\n"
    )
    assert rows(session, "SELECT * FROM sold WHERE id = 2 TO RUN by-name/first.py") == [{"item": "nut"}]


@pytest.mark.variants(4)
@pytest.mark.parametrize(
    "case", [case for case in cases("runnables/errors.sql") if case.dialect == "duckdb"], ids=str
)
def test_a_mistake_is_told_at_its_place(session: Session, case: Case) -> None:
    refusal(case, lambda program: list(session.run(program)))


def test_a_program_of_statements_is_checked_before_it_runs(session: Session) -> None:
    with pytest.raises(SemanticError, match=r"there is no program totls\.py"):
        list(session.run("CREATE TABLE never AS SELECT 1; SELECT * FROM never TO RUN totls.py INTO t"))
    assert "never" not in session.source.tables()


def test_an_installed_program_is_not_run(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLFLOW_MODEL_PATH", str(tmp_path))
    installed = tmp_path / "lib" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "tool.py").touch()
    with pytest.raises(SemanticError, match=r"there is no program lib/site-packages/tool\.py"):
        list(session.run("SELECT * FROM sold TO RUN lib/site-packages/tool.py"))


def test_the_plan_shows_what_would_run(session: Session) -> None:
    [statement] = session.parse(TOTALS)
    found = {
        (row["section"], row["name"]): row["value"] for row in session.plan(statement).to_arrow().to_pylist()
    }
    assert (
        found["statement", "RUN totals.py"]
        == f"{FIXTURES / 'runnables' / 'totals.py'} would run on this machine"
    )
    assert (found["argument", "1"], found["argument", "2"]) == ("--a b", "c;d")
    assert found["column", "item"] == "string"
    assert found["result", "cheap"] == "would be made or replaced"


def test_what_a_program_prints_is_shown_as_it_comes() -> None:
    out, shown = io.StringIO(), []
    narrator = Narrator(out)
    live = Live(lambda bundle, _, __: shown.append(bundle["text/plain"]), clock=lambda: 0.0)
    watcher = Watcher(narrator, Interruption())
    watcher.step = ProgramStep(2, 3, "RUN x.py")
    narrator.progress(Output(("one", "two")))
    watcher.progress(Output(("three",)))
    live.progress(Output(tuple(map(str, range(60)))))
    assert out.getvalue() == "  one\n  two\n2 of 3 three\n"
    assert shown == ["\n".join(map(str, range(10, 60)))]


# Images ----------------------------------------------------------------------------------------------------------

OF_IMAGE = (
    "SELECT * FROM sold ORDER BY id TO RUN team/programs:1.2 CMD 'totals.py', '--a b' INTO totals, cheap"
)


@pytest.fixture
def engine(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for docker; the file of its last arguments."""
    monkeypatch.setattr(containers, "ENGINES", ("docker", "podman"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SQLFLOW_IMAGES", "other/, team/programs")
    monkeypatch.setenv("SQLFLOW_MODEL_PATH", str(tmp_path))
    monkeypatch.setenv("A_SECRET", "s3cret")
    return write_engine(tmp_path, repository, FIXTURES / "runnables")


def test_an_image_runs_in_a_container_of_this_machine(session: Session, engine: Path) -> None:
    [result] = session.run(OF_IMAGE)
    assert result.message == "totals.py wrote 3 rows to totals and 2 rows to cheap"
    assert rows(session, "SELECT item, sales FROM totals ORDER BY sales DESC LIMIT 1") == [
        {"item": "bolt", "sales": 2}
    ]
    [program, *options] = json.loads(engine.read_text())
    assert (program, options[:2]) == ("run", ["--rm", "--interactive"])
    assert "--network=none" in options
    assert options[-2:] == ["totals.py", "--a b"]
    [read, written] = [option for option in options if option.startswith("--volume=")]
    assert read.endswith(":ro")
    assert not written.endswith(":ro")
    assert "s3cret" not in engine.read_text()


def test_the_plan_names_the_image_and_runs_nothing(session: Session, engine: Path) -> None:
    [statement] = session.parse(OF_IMAGE)
    first, *_ = session.plan(statement).to_arrow().to_pylist()
    assert first["value"] == "totals.py would run on this machine"
    assert not engine.exists()


@pytest.mark.parametrize(
    ("image", "program", "message"),
    [
        ("team/programs:absent", "totals.py", "ended with exit code 125: Unable to find image"),
        ("team/programs:1", "total.py", "the image has no program total.py in"),
        ("ubuntu:24.04", "totals.py", "no statement may run the image ubuntu:24.04 here"),
    ],
)
def test_an_image_that_does_not_run_is_an_error(
    session: Session, engine: Path, image: str, program: str, message: str
) -> None:
    with pytest.raises(SQLFlowError, match=message):
        session.run(f"SELECT * FROM sold TO RUN {image} CMD '{program}' INTO totals, cheap")
