"""The option --password: asked at a terminal, and used for the data source."""

from __future__ import annotations

import sys

import pytest

from edl.data.server_url import SECRETS, NoPasswordError, parse_server
from edl.errors import SourceError
from edl.sources.postgresql.connection import _connection_error
from sqlflow_edl.cli import source
from sqlflow_edl.cli.main import main
from tests.databases import Databases

NEVER_READ = "mysql://reader:hidden@db/shop"


@pytest.mark.parametrize(("tail", "exit_code"), [("", 0), ("x", 1)])
def test_the_typed_password_opens_the_database(
    databases: Databases,
    tail: str,
    exit_code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = parse_server(databases.url("mysql"))
    monkeypatch.setenv(SECRETS, "{}")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(source, "getpass", lambda asked: url.password + tail)
    assert main(["run", "-p", "--source", str(url), "--format", "csv", "-e", "SELECT 7 AS x"]) == exit_code
    told = capsys.readouterr()
    assert told.out == ("" if exit_code else "x\n7\n")
    assert ("Access denied" in told.err) is bool(exit_code)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("duckdb:", "for databases on servers, not for duckdb"),
        (NEVER_READ, "the URL has one"),
        ("mysql://reader@db/shop", "needs a terminal"),
    ],
)
def test_where_no_password_can_be_asked_for_is_told(
    url: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    assert main(["run", "-p", "--source", url, "-e", "SELECT 1"]) == 2
    words = capsys.readouterr().err
    assert told in words
    assert "hidden" not in words


def test_an_end_of_input_is_no_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(asked: str) -> str:
        raise EOFError

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(source, "getpass", ended)
    assert main(["run", "-p", "--source", "mysql://reader@db/shop", "-e", "SELECT 1"]) == 2
    assert "no password was typed" in capsys.readouterr().err


def test_a_password_that_the_server_misses_is_asked_for_at_a_terminal(
    databases: Databases, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = parse_server(databases.url("mysql"))
    monkeypatch.setenv(SECRETS, "{}")
    asked: list[str] = []
    monkeypatch.setattr(source, "getpass", lambda question: asked.append(question) or url.password)
    command = ["run", "--source", str(url), "--format", "csv", "-e", "SELECT 7 AS x"]
    assert main(command) == 1
    assert "give the password by -p" in capsys.readouterr().err
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert main(command) == 0
    assert asked == [f"Password for {url}: "]
    assert "7" in capsys.readouterr().out


@pytest.mark.parametrize(
    "said",
    ["fe_sendauth: no password supplied", 'FATAL:  password authentication failed for user "reader"'],
)
def test_postgresql_tells_that_a_password_is_missing(said: str) -> None:
    for url, kind in (("reader", NoPasswordError), ("reader:wrong", SourceError)):
        assert (
            type(_connection_error(OSError(said), parse_server(f"postgresql://{url}@db:5432/shop"))) is kind
        )
