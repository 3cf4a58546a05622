"""What a stream shows."""

from __future__ import annotations

import io

import pytest

from sqlflow_edl.display.terminal import can_show, console, in_ascii, painted_error, shown_error

ERROR = "error: no\n  --> <statement>:1:8\n  1 | SELECT nope ^^^\n    |        ^^^^\n    = did you mean note?"


def test_the_word_and_the_caret_of_an_error_are_in_colour() -> None:
    assert painted_error(ERROR).splitlines() == [
        "\x1b[1;31merror:\x1b[0m no",
        "  --> <statement>:1:8",
        "  1 | SELECT nope ^^^",
        "    |        \x1b[1;31m^^^^\x1b[0m",
        "    = did you mean note?",
    ]


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_an_error_is_plain_where_colours_are_not_wanted(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert shown_error(ERROR, Terminal()) != ERROR
    assert shown_error(ERROR, io.StringIO()) == ERROR
    monkeypatch.setenv(name, value)
    assert shown_error(ERROR, Terminal()) == ERROR


def test_a_dumb_terminal_is_as_wide_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "132")
    out = Terminal()
    console(out).print("x" * 130, style="bold")
    assert out.getvalue() == "x" * 130 + "\n"


def test_an_encoding_without_blocks_gets_characters_of_ascii() -> None:
    assert can_show(io.StringIO(), "▁█")
    assert not can_show(io.TextIOWrapper(io.BytesIO(), "latin-1"), "▁█")
    assert in_ascii("▁▂▃▄▅▆▇█ ━╌ …▌").isascii()
