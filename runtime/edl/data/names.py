"""Dotted table names: splitting, joining, quoting, and unused new names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from edl.errors import SourceError, Span

_QUOTED_PART = re.compile(r'"((?:[^"]|"")*)"')

_WORD = re.compile(r"\w+")
_UNFIT = {"mysql": re.compile("[\U00010000-\U0010ffff]"), "maxcompute": re.compile(r"\W")}
_BEFORE_TABLES = ("from", "join", "into", "update", "table")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_NAME = 63  # characters of a column name that every database accepts
PROBE = "sqlflow_edl_probe"  # table that is never made, only the right to make it is asked for


def split_name(name: str) -> tuple[str, ...]:
    """Split a dotted name into its parts. A part in double quotes may hold dots; `""` in it is one quote.

    Outside quotes every character but the dot belongs to the name, so no text can be anything but a name. Raises
    SourceError if a part is empty or a quote is not closed.
    """
    parts, at = [], 0
    while True:
        if match := _QUOTED_PART.match(name, at):
            part, at = match[1].replace('""', '"'), match.end()
        elif name.startswith('"', at):
            raise SourceError(f"the name {name} has a quote that is not closed")
        else:
            end = name.find(".", at)
            part, at = (name[at:], len(name)) if end < 0 else (name[at:end], end)
        if not part:
            raise SourceError(
                f"the name {name or '(empty)'} has an empty part", hint="write it as schema.table"
            )
        parts.append(part)
        if at == len(name):
            return tuple(parts)
        if name[at] != ".":
            raise SourceError(
                f"the name {name} continues after a closing quote", hint='write it as "schema"."table"'
            )
        at += 1


def quote_part(part: str, quote: str = '"') -> str:
    """Quote one part as an identifier, whatever characters it has."""
    return quote + part.replace(quote, quote * 2) + quote


def join_quoted(parts: Sequence[str], quote: str = '"') -> str:
    return ".".join(quote_part(part, quote) for part in parts)


def quote_where_needed(name: str) -> str:
    """Return a name as DuckDB reads it. Dots, of a column behind its table, need no quotes."""
    return ".".join(part if _PLAIN.fullmatch(part) else quote_part(part) for part in name.split("."))


def format_name(parts: Sequence[str], reserved: Collection[str] = (), quote: str = '"') -> str:
    """Join the parts to a dotted name, quoted only where necessary."""
    return ".".join(
        part if _PLAIN.fullmatch(part) and part.lower() not in reserved else quote_part(part, quote)
        for part in parts
    )


def reserved_hint(
    sql: str, error: Span, reserved: Collection[str], candidates: Iterable[str], quote: str = '"'
) -> str | None:
    """Return a hint how to quote a reserved word used as a name, if a syntax error is at it or at the word after it.

    `reserved` holds reserved words in lower case; `candidates` holds tables of the query and their columns.
    """
    names = {name.lower() for name in candidates}
    for word in reversed(_WORD.findall(sql[: error.end])[-2:]):
        if word.lower() in names.intersection(reserved):
            return f"{word} is a reserved word; as a name it is written {quote_part(word, quote)}"
    return None


def fit_name(name: str, scheme: str) -> str:
    """Replace every character that column names of this scheme's databases cannot hold by _."""
    unfit = _UNFIT.get(scheme)
    return unfit.sub("_", name) if unfit else name


def place_of(
    names: Iterable[Sequence[str]],
    words: Sequence[re.Match[str]],
    bare: Callable[[re.Match[str]], str],
    *,
    table: bool,
) -> Span | None:
    """Find the first of some names among the words of a query: its parts, with dots between them.

    `bare` converts a word to a name. `table` prefers a match behind FROM or JOIN to one at a column.
    """
    words_present = [bare(word).casefold() for word in words]
    for parts in names:
        words_sought = [part for part_name in parts for part in (".", part_name.casefold())][1:]
        places = [
            at
            for at in range(len(words_present))
            if words_present[at : at + len(words_sought)] == words_sought
        ]
        if places:
            behind = (at for at in places if table and at and words_present[at - 1] in _BEFORE_TABLES)
            at = next(behind, places[0])
            return Span(words[at].start(), words[at + len(words_sought) - 1].end())
    return None


def free_name(candidate: str, taken: Iterable[str]) -> str:
    """Return `candidate`, with underscores appended until no name in `taken` equals it (ignoring case)."""
    folded = {name.casefold() for name in taken}
    while candidate.casefold() in folded:
        candidate += "_"
    return candidate


def unique_names(names: Sequence[str], taken: Iterable[str]) -> tuple[str, ...]:
    """Return the names, shortened to `LONGEST_NAME` and numbered if taken, ignoring case.

    No name ends in a space: MySQL does not allow that.
    """
    used = {name.casefold() for name in taken}
    result = []
    for name in names:
        unique, number = name[:LONGEST_NAME].rstrip(), 2
        while unique.casefold() in used:
            suffix = f"_{number}"
            unique, number = name[: LONGEST_NAME - len(suffix)] + suffix, number + 1
        used.add(unique.casefold())
        result.append(unique)
    return tuple(result)


def duplicate(names: Iterable[str]) -> str | None:
    """Return the first name that equals an earlier one ignoring case, or None."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            return name
        seen.add(name.casefold())
    return None


def check_unique(names: Iterable[str]) -> None:
    """Raise SourceError if two columns of a query have one name."""
    if name := duplicate(names):
        raise named_twice(name)


def named_twice(name: str) -> SourceError:
    return SourceError(
        f"the query has more than one column named {name}", hint=f"give each its own name: … AS {name}_2"
    )
