"""Sessions by alias and URL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl.errors import SemanticError
from sqlflow_edl.extensions.notebook.connections import Connections, ConnectionSettings
from sqlflow_edl.session.session import Session


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connections]:
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)
    opened = Connections()
    yield opened
    opened.close_all()


def make_table(session: Session) -> None:
    list(session.run("CREATE TABLE here AS SELECT 1 AS x"))


def has_table(session: Session) -> bool:
    return "here" in session.source.tables()


def test_the_last_that_was_connected_is_current(connections: Connections) -> None:
    first = connections.connect(ConnectionSettings("duckdb:"), "first")
    second = connections.connect(ConnectionSettings("sqlite:"), "second")
    assert connections.session() is second
    assert connections.session("first") is first
    assert connections.session() is second, "to name another one once changes nothing"
    connections.use("first")
    assert connections.session() is first


def test_connecting_again_with_the_same_settings_keeps_the_session(connections: Connections) -> None:
    make_table(connections.connect(ConnectionSettings("duckdb:")))
    assert has_table(connections.connect(ConnectionSettings("duckdb:")))
    assert not has_table(connections.connect(ConnectionSettings("duckdb:", workers=2)))


def test_a_url_that_is_not_open_is_opened_and_kept(connections: Connections) -> None:
    make_table(connections.session("duckdb:"))
    assert has_table(connections.session("duckdb:"))
    assert has_table(connections.session())


def test_without_any_the_variable_names_the_source(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SemanticError, match="no data source is connected"):
        connections.session()
    monkeypatch.setenv("SQLFLOW_SOURCE", "sqlite:")
    assert connections.session().dialect == "sqlite"


def test_an_alias_that_nobody_has_is_answered_with_the_nearest(connections: Connections) -> None:
    connections.connect(ConnectionSettings("duckdb:"), "warehouse")
    with pytest.raises(SemanticError, match="no connection has the alias warehose") as raised:
        connections.session("warehose")
    assert raised.value.hint == "did you mean warehouse?"


@pytest.mark.soak
def test_what_was_closed_is_gone(connections: Connections) -> None:
    make_table(connections.connect(ConnectionSettings("duckdb:"), "a"))
    connections.close()
    with pytest.raises(SemanticError, match="no such connection is open"):
        connections.close("a")
    with pytest.raises(SemanticError, match="no data source is connected"):
        connections.session()
    assert not has_table(connections.connect(ConnectionSettings("duckdb:"), "a"))
