"""Dotted names of tables: taken apart, put together, quoted, and new ones that collide with nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from edl.errors import SourceError, Span

_QUOTED_PART = re.compile(r'"((?:[^"]|"")*)"')

_WORD = re.compile(r"\w+")
_UNFIT = {"mysql": re.compile("[\U00010000-\U0010ffff]"), "maxcompute": re.compile(r"\W")}
_BEFORE_TABLES = ("from", "join", "into", "update", "table")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def split_name(name: str) -> tuple[str, ...]:
    """The parts of a dotted name. A part in double quotes may hold dots; `""` in it is one quote.

    Outside quotes every character but the dot belongs to the name, so no text is ever anything but a name.
    SourceError: a part is empty, or a quote is not closed.
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
                f"the name {name} goes on after a closing quote", hint='write it as "schema"."table"'
            )
        at += 1


def quoted(part: str, quote: str = '"') -> str:
    """One part as an identifier, whatever characters it has."""
    return quote + part.replace(quote, quote * 2) + quote


def dotted(parts: Sequence[str], quote: str = '"') -> str:
    return ".".join(quoted(part, quote) for part in parts)


def shown(parts: Sequence[str], reserved: Collection[str] = (), quote: str = '"') -> str:
    """The name as a person would write it: quoted where it has to be."""
    return ".".join(
        part if _PLAIN.fullmatch(part) and part.lower() not in reserved else quoted(part, quote)
        for part in parts
    )


def reserved_hint(
    sql: str, error: Span, reserved: Collection[str], known: Iterable[str], quote: str = '"'
) -> str | None:
    """How to write a name that cannot stand without quotes, where a syntax error is at it, or at the word after it.

    reserved: what no name can be, in small letters. known: tables of the query, and their columns.
    """
    names = {name.lower() for name in known}
    for word in reversed(_WORD.findall(sql[: error.end])[-2:]):
        if word.lower() in names.intersection(reserved):
            return f"{word} is a reserved word; as a name it is written {quoted(word, quote)}"
    return None


def fitting(name: str, scheme: str) -> str:
    """The name with _ for every character that no column of this scheme's databases has in its name."""
    unfit = _UNFIT.get(scheme)
    return unfit.sub("_", name) if unfit else name


def place_of(
    names: Iterable[Sequence[str]],
    words: Sequence[re.Match[str]],
    bare: Callable[[re.Match[str]], str],
    *,
    table: bool,
) -> Span | None:
    """Where the first of some names is among the words of a query: its parts, with dots between them.

    bare: a word as a name. table: of one, whose place is rather behind FROM than where a column has its name.
    """
    found = [bare(word).casefold() for word in words]
    for parts in names:
        wanted = [part for each in parts for part in (".", each.casefold())][1:]
        places = [at for at in range(len(found)) if found[at : at + len(wanted)] == wanted]
        if places:
            behind = (at for at in places if table and at and found[at - 1] in _BEFORE_TABLES)
            at = next(behind, places[0])
            return Span(words[at].start(), words[at + len(wanted) - 1].end())
    return None


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """`wanted`, with underscores at its end until no name in `taken` is equal to it (case does not count)."""
    folded = {name.casefold() for name in taken}
    while wanted.casefold() in folded:
        wanted += "_"
    return wanted


def duplicate(names: Iterable[str]) -> str | None:
    """The first name that an earlier one equals when case does not count."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            return name
        seen.add(name.casefold())
    return None
