"""The session of a console, opened in a thread."""

from __future__ import annotations

import pytest

from edl.errors import SourceError
from sqlflow_edl.console.connection import Connection, UnopenedError
from sqlflow_edl.session.observer import Observer
from sqlflow_edl.session.session import Session


def test_the_session_opens_when_it_is_asked_for() -> None:
    connection = Connection(lambda source, observer: Session(source), "sqlite::memory:")
    assert connection.dialect == "duckdb"
    with connection.session() as session:
        assert session.dialect == connection.dialect == "sqlite"
    connection.close()


def test_what_is_noted_at_the_opening_is_kept() -> None:
    def opener(source: str, observer: Observer) -> Session:
        observer.note("a job had finished")
        return Session(source)

    connection = Connection(opener, "duckdb:")
    with connection.session():
        assert connection.notes == ["a job had finished"]
    connection.close()


def test_an_unknown_dialect_is_an_error_of_the_opening() -> None:
    connection = Connection(lambda source, observer: Session(source, dialect="duckbd"), "duckdb:")
    with pytest.raises(UnopenedError, match="unknown SQL dialect"), connection.session():
        pass
    connection.close()


def test_a_defect_of_ours_is_raised_as_it_is() -> None:
    def opener(source: str, observer: Observer) -> Session:
        raise ZeroDivisionError

    connection = Connection(opener, "duckdb:")
    with pytest.raises(ZeroDivisionError), connection.session():
        pass


def test_columns_are_asked_for_once() -> None:
    connection = Connection(lambda source, observer: Session(source), "duckdb:")
    with connection.session() as session:
        list(session.run("CREATE TABLE t (a INT, b INT)"))
    assert connection.columns("t") == ("a", "b")
    with connection.session() as session:
        list(session.run("ALTER TABLE t DROP COLUMN b"))
    assert connection.columns("t") == ("a", "b")
    connection.refresh()
    connection.known(None)
    assert connection.columns("t") == ("a",)
    connection.close()


@pytest.mark.soak
def test_a_database_that_refuses_leaves_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(lambda source, observer: Session(source), "duckdb:")
    with connection.session() as session:
        list(session.run("CREATE TABLE t (a INT)"))
        connection.catalog.look(session)

        def refuse() -> list[str]:
            raise SourceError("the server is away")

        monkeypatch.setattr(session.source, "tables", refuse)
    connection.refresh()
    assert connection.known(None).tables == ("t",)
    connection.close()
