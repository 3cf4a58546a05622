"""Translation of MaxCompute's errors: the message, the place in the query, and a hint."""

from __future__ import annotations

import re
from collections.abc import Callable

import requests
from odps import errors

from edl.data.names import named_twice
from edl.data.source import ConflictError, UnreachableError
from edl.errors import SourceError, Span, did_you_mean
from edl.sources.maxcompute.sql import LEXICON

_SAID = re.compile(r"ODPS-(\d{7}):\s*(?:\[(\d+),(\d+)\]\s*)?(?P<words>[^\n]+)")
_UNRESOLVED = re.compile(r"(column|table|function or view) '?([^\s']+)'? cannot be resolved")
_PREFIX = re.compile(r"^(?:Semantic analysis|Parse) exception - ")
_HINTS = {
    errors.NoPermission: "request the privilege that it names",
    errors.Unauthorized: "check the access id and the secret key",
    errors.SignatureNotMatch: "check the secret key: in the URL, in the environment or in the connections file",
}
_STOPPED = "status=CANCELLED"
_EXISTS = "0130211"
_AMBIGUOUS = re.compile(r"column name '?([^\s']+)'? is ambiguous")
_BY_NUMBER = {
    "0130013": "request the privilege that it names",
    "0420095": "request the privilege that it names",
}

Names = Callable[[], list[str]]


def translate_error(
    error: Exception,
    query: str = "",
    run: str = "",
    tables: Names | None = None,
    columns: Callable[[list[str]], list[str]] | None = None,
) -> SourceError:
    """Translate the error of running `query`, with a span in it.

    `run` is the text that was run, which contains the query. `tables` and `columns` (of tables) list names for hints.
    """
    text = str(error)
    if isinstance(error, requests.RequestException | errors.ConnectTimeout):
        return UnreachableError(
            "the service cannot be reached", hint="check host, port and scheme of the URL"
        )
    if _STOPPED in text:
        return SourceError("the statement was stopped")
    said = list(_SAID.finditer(text))
    if not said:
        last = text.strip().splitlines()[-1] if text.strip() else type(error).__name__
        return SourceError(last.rstrip(".!"), hint=_hint(error))
    match = said[-1]
    words = _PREFIX.sub("", match["words"]).rstrip(".!")
    span = _span(query, run, int(match[2]), int(match[3])) if match[2] and query else None
    hint = _BY_NUMBER.get(match[1]) or _hint(error)
    if unresolved := _UNRESOLVED.search(words):
        hint = _near(unresolved[1], unresolved[2], query, tables, columns) or hint
    if twice := _AMBIGUOUS.search(words):
        return named_twice(twice[1])
    kind = ConflictError if match[1] == _EXISTS else SourceError
    return kind(words, span=span, hint=hint)


def _hint(error: Exception) -> str | None:
    return next((hint for kind, hint in _HINTS.items() if isinstance(error, kind)), None)


def _span(query: str, run: str, line: int, column: int) -> Span | None:
    """Return the span in the query of the token at a line and column of the text that was run."""
    before = run.find(query)
    line -= run.count("\n", 0, before) if before > 0 else 0
    lines = query.splitlines(keepends=True)
    if not 1 <= line <= len(lines):
        return None
    at = sum(map(len, lines[: line - 1])) + column - 1
    for token in LEXICON.words(query):
        if token.start() <= at < token.end():
            return Span(token.start(), token.end())
    return None


def _near(
    kind: str, name: str, query: str, tables: Names | None, columns: Callable[[list[str]], list[str]] | None
) -> str | None:
    if tables is None or columns is None:
        return None
    all_tables = tables()
    name = name.rpartition(".")[2].strip("`")
    if kind == "table":
        return did_you_mean(name, all_tables)
    words = {token[0].strip("`").lower() for token in LEXICON.words(query) if token.lastgroup == "name"}
    return (
        did_you_mean(name, columns([table for table in all_tables if table.lower() in words]))
        if kind == "column"
        else None
    )
