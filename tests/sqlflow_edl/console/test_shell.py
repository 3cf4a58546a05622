"""Statements typed at the console: what is sent when, what is shown, and what goes on after an error."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from edl.errors import SourceError
from sqlflow_edl.console.config import parse_config
from sqlflow_edl.console.prompt import history
from sqlflow_edl.session.session import Session
from tests.databases import Databases
from tests.sqlflow_edl.console.conftest import Typed

CTRL_C = "\x03"
CTRL_D = "\x04"
CTRL_R = "\x12"
ESCAPED_ENTER = "\x1b\r"


class Terminal(io.StringIO):
    """A screen."""

    def isatty(self) -> bool:
        return True


def test_a_statement_is_sent_by_its_semicolon_and_shown_as_a_table(typed: Typed) -> None:
    console = typed("SELECT size,\r", "       colour FROM flowers;\r")
    assert console.data.splitlines() == ["size  colour", "   0  red   ", "   1  red   ", "   2  red   "]
    assert "3 rows (" in console.words


@pytest.mark.soak
def test_a_semicolon_in_a_string_or_a_comment_ends_nothing(typed: Typed) -> None:
    assert typed("SELECT length('a;\r", "b') -- ;\r", "AS x;\r").data.split() == ["x", "4"]


def test_escape_and_enter_send_a_statement_without_its_semicolon(typed: Typed) -> None:
    assert typed("SELECT 7 AS x", ESCAPED_ENTER).data.split() == ["x", "7"]


@pytest.mark.soak
def test_several_statements_run_until_one_fails(typed: Typed) -> None:
    console = typed("SELECT 1 AS a; SELECT b FROM flowers; SELECT 3 AS c;\r", "SELECT 4 AS d;\r")
    assert [line.strip() for line in console.data.splitlines()] == ["a", "1", "d", "4"]
    assert console.words.count("error:") == 1


def test_an_error_points_at_its_place_and_the_console_goes_on(typed: Typed) -> None:
    console = typed("SELECT size\r", "FROM flowres;\r", "SELECT 5 AS x;\r")
    assert "--> <statement>:2:6" in console.words
    assert "  2 | FROM flowres" in console.words
    assert "did you mean flowers?" in console.words
    assert console.data.split() == ["x", "5"]


@pytest.mark.soak
def test_a_backslash_and_g_show_rows_one_below_another(typed: Typed) -> None:
    console = typed("SELECT size, colour FROM flowers WHERE size = 2 \\G\r")
    assert [line.split() for line in console.data.splitlines()] == [
        ["row", "1"],
        ["size", "2"],
        ["colour", "red"],
    ]


@pytest.mark.soak
def test_a_table_that_is_wider_than_the_terminal_is_shown_vertically(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "dumb")
    wide = ", ".join(f"'{letter * 9}' AS {letter}" for letter in "abcde")
    assert typed("SELECT 1 AS x;\r", terminal=Terminal).data.split() == ["x", "int32", "1"]
    assert typed(f"SELECT {wide};\r", terminal=Terminal).data.split()[:4] == ["row", "1", "a", "a" * 9]


def test_what_is_taller_than_the_terminal_goes_to_the_pager(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("TERM", "dumb")
    seen = tmp_path / "seen"
    console = typed(
        f"/pager tee {seen}\r",
        "SELECT i FROM range(9) AS t(i);\r",
        "/nopager\r",
        "SELECT i FROM range(30) AS t(i);\r",
        terminal=Terminal,
    )
    assert len(seen.read_text().splitlines()) == 11
    assert len(console.data.splitlines()) == 32


@pytest.mark.soak
def test_the_interrupt_key_clears_what_is_typed(typed: Typed) -> None:
    assert typed("SELECT 1 AS gone", CTRL_C, "SELECT 2 AS stays;\r").data.split() == ["stays", "2"]


def test_the_interrupt_key_leaves_where_nothing_is_typed_twice(typed: Typed) -> None:
    console = typed(
        *("x", CTRL_C, CTRL_C, "SELECT 1 AS x;\r"),
        *(CTRL_C, CTRL_C, "SELECT 2 AS x;\r"),
    )
    assert console.data.split() == ["x", "1"]
    assert console.words.count("Ctrl-C again or Ctrl-D leaves") == 2


@pytest.mark.soak
def test_what_is_typed_between_two_interrupts_stays_unsent(typed: Typed) -> None:
    console = typed(CTRL_C, "abc", CTRL_C, CTRL_C, "SELECT 1 AS x;\r")
    assert console.data.split() == ["x", "1"]


def test_types_stand_under_the_names_of_columns_on_a_terminal(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    console = typed("SELECT 1 AS x;\r", "/types\r", "SELECT 2 AS x;\r", terminal=Terminal)
    assert console.data.split() == ["x", "int32", "1", "x", "2"]


@pytest.mark.soak
def test_the_solution_of_an_optimization_is_data_with_types(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    statement = "SELECT 1 AS x TO MINIMIZE SUM(y) WITH variables = 'y(x)', var_type = NonNegativeReals;\r"
    assert typed(statement, terminal=Terminal).data.split() == ["x", "y", "int32", "double", "1", "0"]


@pytest.mark.soak
def test_the_end_key_leaves(typed: Typed) -> None:
    assert typed("SELECT 1 AS x;\r", CTRL_D, "SELECT 2 AS x;\r").data.split() == ["x", "1"]


@pytest.mark.variants(2)
@pytest.mark.parametrize("leave", ["exit", "QUIT;", "\\q", "/quit"])
def test_a_word_leaves(typed: Typed, leave: str) -> None:
    assert typed("SELECT 1 AS x;\r", f"{leave}\r", "SELECT 2 AS x;\r").data.split() == ["x", "1"]


def test_what_was_typed_is_there_in_the_next_console_but_for_passwords(
    typed: Typed, state_folder: Path
) -> None:
    typed("SELECT 11 AS first;\r", "SELECT 'x' AS password;\r")
    file = state_folder / "sqlflow-edl" / "history"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "password" not in file.read_text()
    assert typed(CTRL_R, "11", "\r", "\r").data.split() == ["first", "11"]


def test_what_cannot_be_taken_back_is_asked_about_and_runs_when_it_is_agreed_to(typed: Typed) -> None:
    count = "SELECT count(*) AS n FROM flowers;\r"
    asked = (
        "DELETE FROM flowers -- WHERE\r",
        "WITH a AS (SELECT 1 WHERE TRUE) DELETE FROM flowers",
        "TRUNCATE flowers",
        "DROP TABLE flowers",
    )
    refused = (text for statement in asked for text in (f"{statement};\r", "n\r", count))
    unasked = "DELETE FROM flowers WHERE size = 0;\r"
    console = typed(*refused, unasked, count, "DELETE FROM flowers;\r", "y\r", count)
    assert console.words.count("not run") == len(asked)
    assert console.data.split() == ["n", "3"] * len(asked) + ["n", "2", "n", "0"]


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("dialect", "type_name"),
    [("sqlite", "BIGINT"), ("mysql", "bigint(20)"), ("postgres", "bigint"), ("maxcompute", "BIGINT")],
)
def test_other_databases_are_opened_in_a_thread_and_used_in_another(
    typed: Typed, databases: Databases, dialect: str, type_name: str
) -> None:
    source = databases.url(dialect)
    with Session(source, create=True) as session:
        list(session.run("CREATE TABLE trees (size BIGINT)"))
    console = typed("/d trees\r", "SELECT 7 AS x;\r", "SELECT height FROM trees;\r", source=source)
    assert console.data.split() == ["column", "type", "size", type_name, "x", "7"]
    assert "--> <statement>:1:8" in console.words


def test_a_data_source_that_cannot_be_opened_ends_the_console(typed: Typed, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nowhere"):
        typed(source=f"duckdb:///{tmp_path}/nowhere.duckdb", end="")


@pytest.mark.soak
def test_settings_of_the_file_take_effect(typed: Typed) -> None:
    config = parse_config(
        'keys = "vi"\nformat = "csv"\ntiming = false\npager = "more -d"\nhistory_size = 1\n'
    )
    console = typed("SELECT 1 AS x\x1bryA;\r", "/status\r", "SELECT 2;\r", config=config)
    assert console.data.startswith("y\n1\n")
    assert "more -d" in console.data
    assert console.words.splitlines()[1] == "1 row"
    assert list(history(1).load_history_strings()) == ["/quit"]
