"""The renderer of errors."""

from __future__ import annotations

import io
import sys

import pytest

from edl.errors import ErrorList, SemanticError, Span, SQLFlowError, UserCodeError
from sqlflow_edl.errors.render import locate, render, traceback_of

TEXT = "SELECT *\nFROM t\nCOLUMN sepal_lenght, b\n"


def error_at(text: str, word: str, **more: str) -> SQLFlowError:
    start = text.index(word)
    return SemanticError(f"unknown column {word}", span=Span(start, start + len(word)), **more)


def test_an_error_shows_its_line_and_a_caret_under_the_word() -> None:
    error = error_at(TEXT, "sepal_lenght", hint="did you mean sepal_length?")
    assert render(error, TEXT, "iris.sql") == (
        "error: unknown column sepal_lenght\n"
        "    --> iris.sql:3:8\n"
        "    |\n"
        "  3 | COLUMN sepal_lenght, b\n"
        "    |        ^^^^^^^^^^^^\n"
        "    = did you mean sepal_length?"
    )


def test_an_error_without_a_place_is_one_line_and_its_hint() -> None:
    assert render(SQLFlowError("no", hint="yes")) == "error: no\n     = yes"


def test_several_errors_come_in_the_order_of_their_places() -> None:
    errors = ErrorList([error_at(TEXT, "b\n"), error_at(TEXT, "sepal_lenght")])
    shown = render(errors, TEXT)
    assert shown.index("sepal_lenght") < shown.index("unknown column b")
    assert shown.count("error:") == 2


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_counted_whatever_their_ends(end: str) -> None:
    text = TEXT.replace("\n", end)
    place = locate(text, error_at(text, "sepal_lenght").span or Span(0, 0))
    assert (place.line, place.column, place.text) == (3, 8, "COLUMN sepal_lenght, b")


def test_a_caret_counts_wide_characters_as_two_cells() -> None:
    text = "COLUMN '漢字', nme"
    caret = render(error_at(text, "nme"), text).splitlines()[-1]
    assert caret.index("^") == len("  1 | ") + len("COLUMN '") + 4 + len("', ")


def test_a_long_line_is_cut_around_the_place() -> None:
    text = "COLUMN " + ", ".join(f"c{i}" for i in range(500)) + ", wrong, d"
    lines = render(error_at(text, "wrong"), text).splitlines()
    assert "wrong" in lines[3]
    assert len(lines[3]) < 200
    assert lines[3][lines[4].index("^") :].startswith("wrong")


def test_control_characters_of_a_statement_do_not_reach_the_terminal() -> None:
    text = "COLUMN \x1b[31mred, \u202ename"
    shown = render(error_at(text, "name"), text)
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize("span", [Span(0, 0), Span(1000, 1001), Span(len(TEXT), len(TEXT) + 1)])
def test_a_place_at_or_beyond_the_end_is_shown_without_failing(span: Span) -> None:
    assert "^" in render(SQLFlowError("odd", span=span), TEXT)


def test_a_traceback_shows_users_code_alone_where_there_is_some() -> None:
    theirs = 'Traceback of your code:\n  File "nets.py", line 3, in call\nValueError: no\n'
    assert traceback_of(UserCodeError("nets.py:3: no", traceback=theirs)) == theirs.rstrip()
    assert traceback_of(UserCodeError("no")).endswith("UserCodeError: no")
    assert traceback_of(SemanticError("no such column")).endswith("SemanticError: no such column")


def test_a_line_that_has_room_is_not_cut_before_a_place_at_its_end() -> None:
    text = f"SELECT {'a' * 100} FROM iris TO TRAIN DNN LABEL species INTO m"
    start = text.index("INTO")
    assert f"  1 | {text}\n" in render(SemanticError("wrong", span=Span(start, start + 4)), text)


@pytest.mark.parametrize(
    ("word", "line", "carets"),
    [
        ("SELECT", "  1 | SELECT '日本語' FROM iris TO TRA…", "    | ^^^^^^"),
        ("TRAIN", "  1 | …' FROM iris TO TRAIN DNN LABEL s…", "    |                 ^^^^^"),
        ("INTO", "  1 | …O TRAIN DNN LABEL species INTO m", "    |                            ^^^^"),
    ],
)
def test_a_line_fits_the_terminal(word: str, line: str, carets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "40")
    text = "SELECT '日本語' FROM iris TO TRAIN DNN LABEL species INTO m"
    start = text.index(word)
    shown = render(SemanticError("wrong", span=Span(start, start + len(word))), text).splitlines()
    assert shown[3:5] == [line, carets]
