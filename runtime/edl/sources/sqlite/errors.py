"""Translation of SQLite's errors: the message, the place in the query if it names one, and a hint.

SQLite names a word, not a place. The word is searched among the words of the query, outside of strings and comments;
a syntax error is at the first place where the query up to there already has it.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import suppress

from edl.data.names import reserved_hint
from edl.data.source import MissingRightError
from edl.errors import SourceError, Span, did_you_mean
from edl.sources.sqlite import queries
from edl.sources.words import Lexicon, not_a_query, not_one_statement

LEXICON = Lexicon()

_NAMED = re.compile(
    r"no such (?P<what>table|column|function|module|collation sequence)(?: name)?: (?P<name>.+)"
)
_AMBIGUOUS = re.compile(r"ambiguous column name: (?P<name>.+)")
_UNRECOGNIZED = re.compile(r'unrecognized token: "(?P<token>.*)"', re.DOTALL)
_NEAR = re.compile(r'near "(?P<token>.*)": syntax error', re.DOTALL)
_CALLED = re.compile(r"(?:misuse of (?:aggregate|window)(?: function)?:? |function )(?P<name>\w+)(?:\(\))?")
_HINTS = (
    (r"locked", "another process or program has it open for writing; try again, or set PRAGMA busy_timeout"),
    (r"not a database", "the file is of another format; read it with a data source of that format"),
    (r"readonly|unable to open", "check the path and its write permissions"),
    (r"cannot start a transaction", "end the open transaction with COMMIT or ROLLBACK"),
    (r"parameters are not allowed|number of bindings", "write values in place of ? and :names"),
    (r"too many columns|too many result", "a table of SQLite has at most 2,000 columns; write fewer"),
    (r"decode to UTF-8", "the text is not UTF-8; read it with CAST(column AS BLOB), or leave it out"),
)
_WRITES = frozenset(
    re.findall(
        r"\w+",
        "INSERT UPDATE DELETE REPLACE CREATE DROP ALTER ATTACH DETACH PRAGMA EXPLAIN ANALYZE VACUUM REINDEX"
        " BEGIN COMMIT END ROLLBACK SAVEPOINT RELEASE",
    )
)


def check_query(sql: str) -> None:
    """Raise SourceError if the text has no statement, or plainly one of another kind."""
    if LEXICON.first_word(sql) in _WRITES:
        raise not_a_query()


def translate_error(error: Exception, connection: sqlite3.Connection, sql: str) -> SourceError:
    """Translate the error of running `sql`, with a span in it if SQLite names a word."""
    message = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".!")
    if "one statement at a time" in message:
        return not_one_statement("several statements")
    if match := _NEAR.search(str(error)):
        span = _find_place(connection, sql, match["token"])
        return SourceError(message, span=span, hint=_find_reserved_word(connection, sql, span))
    if "incomplete input" in message:
        words = list(LEXICON.words(sql))
        return SourceError(message, span=Span(*words[-1].span()) if words else None)
    if match := _UNRECOGNIZED.search(str(error)):
        return SourceError(message, span=_word(sql, match["token"]))
    match = _NAMED.search(message) or _AMBIGUOUS.search(message) or _CALLED.search(message)
    if not match:
        kind = MissingRightError if "readonly" in message else SourceError
        return kind(message, hint=_fixed_hint(message))
    what = match.groupdict().get("what")
    last = match["name"].rpartition(".")[2]
    hint = did_you_mean(last, _known_names(connection, sql, what)) if what else None
    parts = match["name"].split(".")
    span = LEXICON.place(sql, (parts, [match["name"]], parts[-1:]), table=what == "table")
    return SourceError(message, span=span, hint=hint)


def _known_names(connection: sqlite3.Connection, sql: str, what: str) -> list[str]:
    """Return candidates for an unknown name; columns are the columns of the tables in the query."""
    with suppress(sqlite3.Error):
        if what == "table":
            return queries.tables(connection)
        if what == "column":
            return queries.columns_of(connection, LEXICON.names(sql))
        if what == "function":
            return queries.functions(connection)
    return []


def _find_reserved_word(connection: sqlite3.Connection, sql: str, span: Span | None) -> str | None:
    with suppress(sqlite3.Error):
        tables = [name for name in LEXICON.names(sql) if queries.columns_of(connection, [name])]
        names = [*tables, *queries.columns_of(connection, tables)]
        return reserved_hint(sql, span, queries.RESERVED, names) if span is not None else None
    return None


def opening_error(error: Exception, place: str) -> SourceError:
    return SourceError(f"cannot open {place}: {error}", hint=_fixed_hint(str(error)))


def _find_place(connection: sqlite3.Connection, sql: str, token: str) -> Span | None:
    """Find the place of a syntax error.

    EXPLAIN runs nothing; pragmas are excluded, as they act while they are compiled.
    """
    spans = [word.span() for word in LEXICON.words(sql) if word[0].casefold() == token.casefold()]
    if len(spans) > 1 and LEXICON.first_word(sql) not in ("PRAGMA", "EXPLAIN"):
        for start, end in spans:
            if _has_syntax_error(connection, sql[:end], token):
                return Span(start, end)
    return Span(*spans[0]) if spans else None


def _word(sql: str, text: str) -> Span | None:
    """Return the span of the first occurrence of a word."""
    return next((Span(*word.span()) for word in LEXICON.words(sql) if word[0].startswith(text)), None)


def _has_syntax_error(connection: sqlite3.Connection, beginning: str, token: str) -> bool:
    try:
        connection.execute(f"EXPLAIN {beginning}").close()
    except (sqlite3.Error, sqlite3.Warning) as error:
        return f'near "{token}"' in str(error)
    return False


def _fixed_hint(message: str) -> str | None:
    return next((hint for pattern, hint in _HINTS if re.search(pattern, message)), None)
