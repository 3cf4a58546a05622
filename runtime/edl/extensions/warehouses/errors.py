"""Errors of a warehouse, with the place in the user's query and the nearest name, from its messages.

A pattern is a regular expression over the driver's message. Its named groups say what the message has:

    message        what is shown in place of the whole message; without it, an error with a place is one of syntax
    table, column  a name that is not known, as the message writes it; `name`, of anything else, such as a function
    line, at       place of the error, from 1, in the text that was sent; `at` counts bytes in the line
    near           what the warehouse takes for the meant name
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edl.errors import SourceError, Span, did_you_mean
from edl.sources.words import Lexicon

LONGEST = 400  # letters of a message that no pattern knows

_QUOTES = "'\"`"


@dataclass(frozen=True, slots=True)
class Asked:
    """Text that was sent, the user's query in it, and functions that return known tables and columns of the query."""

    sent: str
    query: str
    tables: Callable[[], list[str]]
    columns: Callable[[], list[str]]


def translate_message(
    message: str, patterns: Sequence[re.Pattern[str]], lexicon: Lexicon, asked: Asked
) -> SourceError:
    """Translate the message of a driver's error."""
    for pattern in patterns:
        if match := pattern.search(message):
            groups = {name: text for name, text in match.groupdict().items() if text is not None}
            break
    else:
        shown = message.strip().splitlines()[0] if message.strip() else "the statement failed"
        return SourceError(shown[:LONGEST].rstrip(".! "))
    kind = next((group for group in ("table", "column", "name") if group in groups), "")
    name = _bare(groups.get(kind, ""))
    parts = name.split(".")
    span = lexicon.place(asked.query, (parts, parts[-1:]), table=kind == "table") if name else None
    if span is None and "line" in groups:
        span = _place(int(groups["line"]), int(groups["at"]), lexicon, asked)
    if "message" in groups:
        message = groups["message"]
    elif "line" in groups:
        message = f"syntax error at {asked.query[span.start : span.end]}" if span else "syntax error"
    hint = f"did you mean {groups['near']}?" if "near" in groups else None
    if kind in ("table", "column"):
        hint = did_you_mean(parts[-1], asked.tables() if kind == "table" else asked.columns())
    return SourceError(message.strip().rstrip(".! "), span=span, hint=hint)


def _bare(name: str) -> str:
    return "".join(letter for letter in name if letter not in _QUOTES)


def _place(line: int, at: int, lexicon: Lexicon, asked: Asked) -> Span | None:
    """Return the word of the query at a place of the text that was sent; the last word for one behind the query."""
    before = asked.sent.find(asked.query)
    words = list(lexicon.words(asked.query))
    lines = asked.query.splitlines(keepends=True)
    line -= asked.sent[: max(before, 0)].count("\n") + 1
    if before < 0 or not words or line < 0:
        return None
    if line >= len(lines):
        return Span(*words[-1].span())
    start = len("".join(lines[:line])) + len(lines[line].encode()[: at - 1].decode(errors="ignore"))
    return next((Span(*word.span()) for word in words if word.end() > start), Span(*words[-1].span()))
