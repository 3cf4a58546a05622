"""Copies of CSV files for DuckDB: UTF-8, and as RFC 4180 says where a file is written more loosely.

DuckDB takes blanks beside a quoted field for a part of it, drops each backslash where one escapes quotes, and reads no
file whose lines end in several ways. A copy has neither blanks there nor escapes, and one line feed after each line.
What is inside of quotes stays as it is, but for the escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from edl.data.files.csv_encoding import UTF8, decode_blocks

_BLANKS = " \t"


@dataclass(frozen=True, slots=True)
class Repairs:
    """Differences of a file from RFC 4180.

    `blanks`: beside quoted fields, as in `1, "a", 2`. `escapes`: `\\"` for a quote and `\\\\` for a backslash, inside
    of quotes. `line_ends`: some lines end with a line feed, others with a carriage return before it.
    """

    blanks: bool = False
    escapes: bool = False
    line_ends: bool = False

    def __bool__(self) -> bool:
        return self.blanks or self.escapes or self.line_ends

    def apply(self, blocks: Iterable[str], delim: str, quote: str) -> Iterator[str]:
        """Yield the text as RFC 4180 says, in blocks of whole rows."""
        if not self:
            yield from blocks
            return
        for parts in _split_rows(blocks, quote, self.escapes):
            for place, part in enumerate(parts):
                parts[place] = (
                    self._unescape(part, quote) if place % 2 else self._outside(parts, place, delim)
                )
            yield quote.join(parts)

    def _unescape(self, part: str, quote: str) -> str:
        """Return a part inside of quotes with quotes doubled in place of escapes."""
        if not self.escapes or "\\" not in part:
            return part
        values = {f"\\{quote}": quote * 2, "\\\\": "\\"}
        return re.sub(rf"\\[{re.escape(quote)}\\]", lambda match: values[match[0]], part)

    def _outside(self, parts: list[str], place: int, delim: str) -> str:
        """Return a part outside of quotes without what is repaired."""
        part = parts[place]
        if self.line_ends:
            part = part.replace("\r\n", "\n")
        if not self.blanks:
            return part
        blanks = _BLANKS.replace(delim, "")
        if place < len(parts) - 1:  # a quote opens behind it
            bare = part.rstrip(blanks)
            part = bare if bare[-1:] in (delim, "\n", "\r") or not (bare or place) else part
        if place:  # a quote closes before it
            bare = part.lstrip(blanks)
            part = bare if bare[:1] in (delim, "\n", "\r") or not (bare or place < len(parts) - 1) else part
        return part


NO_REPAIRS = Repairs()


def _split_rows(blocks: Iterable[str], quote: str, escapes: bool) -> Iterator[list[str]]:
    """Yield the parts of some rows at a time: the even ones are outside of quotes, the others inside."""
    rest = ""
    for block in chain(blocks, [None]):
        parts = _split_quotes(rest + (block or ""), quote, escapes)
        if block is None:
            yield parts
            return
        last = next(
            (place for place in range(len(parts) - 1, -1, -1) if not place % 2 and "\n" in parts[place]), None
        )
        if last is None:
            rest = rest + block
            continue
        end = parts[last].rfind("\n") + 1
        rest = quote.join([parts[last][end:], *parts[last + 1 :]])
        yield [*parts[:last], parts[last][:end]]


def _split_quotes(text: str, quote: str, escapes: bool) -> list[str]:
    """Return the parts of a text between its quotes, without counting escaped ones."""
    if not escapes:
        return text.split(quote)
    places = [
        match.start()
        for match in re.finditer(rf"\\.|{re.escape(quote)}", text, re.DOTALL)
        if match[0] == quote
    ]
    return [text[start + 1 : end] for start, end in zip([-1, *places], [*places, len(text)], strict=True)]


def copy_as_utf8(
    path: str,
    encoding: str,
    skip: int,
    target: Path,
    delim: str = ",",
    quote: str = '"',
    repairs: Repairs = NO_REPAIRS,
) -> None:
    """Write the text of a file, without its first `skip` lines and with `repairs`, to `target` in UTF-8."""
    with target.open("w", encoding=UTF8, newline="") as file:
        for block in repairs.apply(_skip_lines(decode_blocks(path, encoding), skip), delim, quote):
            file.write(block)


def _skip_lines(blocks: Iterable[str], skip: int) -> Iterator[str]:
    """Yield the text without its first lines."""
    for block in blocks:
        while skip and (end := re.search("\r\n?|\n", block)):
            block, skip = block[end.end() :], skip - 1
        if not skip:
            yield block
