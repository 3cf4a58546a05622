"""Renderer of all errors: message, position, a caret under the text, and a hint.

error: unknown column sepal_lenght
  --> iris.sql:3:8
   |
 3 | COLUMN sepal_lenght, sepal_width
   |        ^^^^^^^^^^^^
   = did you mean sepal_length?
     SELECT … COLUMN sepal_length, sepal_width …

The last line, the whole statement with the remedy, is there if all errors of a statement have one that can be tried.
"""

from __future__ import annotations

import shutil
import sys
import traceback
import unicodedata
from dataclasses import dataclass
from itertools import accumulate, takewhile

from edl.errors import ErrorList, Span, SQLFlowError, UserCodeError

LONGEST_LINE = 160  # cells of the user's text in a message; a longer line is cut around the position
_SHORTEST_LINE = 20  # of them in a narrow terminal
_BESIDE = len("123 | …") + 1  # cells beside the text where it is cut


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Position for users: line and column from 1, columns in characters."""

    line: int
    column: int
    text: str  # of the line
    width: int  # characters under the caret, at least 1


def locate(text: str, span: Span) -> TextPlace:
    """Return the position of the span's start in `text`."""
    start = min(max(span.start, 0), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    width = max(1, min(span.end, line_end) - start)
    return TextPlace(
        text.count("\n", 0, start) + 1, start - line_start + 1, text[line_start:line_end].rstrip("\r"), width
    )


def render(error: SQLFlowError, text: str = "", name: str = "") -> str:
    """Return the error as plain text of several lines.

    text: the program. name: its file, empty for one typed in.
    """
    errors = error.errors if isinstance(error, ErrorList) else (error,)
    return "\n".join(_render_one(one_error, text, name) for one_error in errors)


def traceback_of(error: SQLFlowError) -> str:
    """Return the traceback that --debug shows: of user code alone if that raised, else of this program."""
    if isinstance(error, UserCodeError) and error.traceback:
        return error.traceback.rstrip()
    return "".join(traceback.format_exception(error)).rstrip()


def _render_one(error: SQLFlowError, text: str, name: str) -> str:
    lines = [f"error: {error.message}"]
    margin = " " * 4
    if error.span is not None and text:
        place = locate(text, error.span)
        number = f"{place.line:>3}"
        room = _room()
        shown, before = _window(place, room)
        margin = " " * len(number)
        lines.append(f"{margin} --> {name or '<statement>'}:{place.line}:{place.column}")
        lines.append(f"{margin} |")
        lines.append(f"{number} | {shown}".rstrip())
        marked = _cells(place.text[place.column - 1 :][: place.width])
        caret = "^" * max(1, min(marked, room - before))
        lines.append(f"{margin} | {' ' * before}{caret}")
    if error.hint:
        first, *more = error.hint.splitlines()
        lines.append(f"{margin} = {first}")
        lines.extend(f"{margin}   {line}" for line in more)
    if error.corrected:
        lines.append(f"{margin} {' ' if error.hint else '='} {error.corrected}")
    return "\n".join(lines)


def _room() -> int:
    """Return the cells for the user's text, so that a line does not wrap on the terminal of stderr."""
    if not sys.stderr.isatty():
        return LONGEST_LINE
    return max(_SHORTEST_LINE, min(LONGEST_LINE, shutil.get_terminal_size().columns - _BESIDE))


def _window(place: TextPlace, room: int) -> tuple[str, int]:
    """Return the visible part of the line, without control characters, and the cells before the caret."""
    middle = place.column - 1 - len(_fit_width(place.text[: place.column - 1][::-1], room // 2 - 1))
    # no room is left at the end
    start = min(middle, len(place.text) - len(_fit_width(place.text[::-1], room)))
    shown = _fit_width(place.text[start:], room)
    before = place.text[start : place.column - 1]
    prefix = "…" if start else ""
    suffix = "…" if start + len(shown) < len(place.text) else ""
    return prefix + _visible(shown) + suffix, len(prefix) + _cells(before)


def _fit_width(text: str, room: int) -> str:
    """Return as many of the first characters as the cells take."""
    ends = accumulate(map(_cells, text[:LONGEST_LINE]))
    return text[: sum(1 for _ in takewhile(lambda cells: cells <= room, ends))]


def _visible(text: str) -> str:
    return "".join(
        " " if char == "\t" else char if unicodedata.category(char) not in {"Cc", "Cf", "Cs"} else "\ufffd"
        for char in text
    )


def _cells(text: str) -> int:
    """Count the terminal cells of the text: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
