"""Translation of PostgreSQL's errors: the message, the place in the text, and a hint.

The server reports the place as a number of characters, and most hints; names similar to an unknown one are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from edl.data.names import reserved_hint
from edl.data.source import ConflictError, MissingRightError
from edl.errors import SourceError, Span, did_you_mean
from edl.sources.postgresql import queries
from edl.sources.postgresql.connection import LEXICON, PostgreSQLConnection, is_lost, state
from edl.sources.words import not_a_query, not_one_statement

DENIED = ("42501", "25006")  # no right; a transaction or server that only reads
SYNTAX, TABLE, COLUMN, FUNCTION = "42601", "42P01", "42703", "42883"

_CONFLICTS = ("23505", "40001", "40P01", "42P07")
_SEVERAL = "cannot insert multiple commands"
_NAME = re.compile(r'(?:relation|column) "?(.+?)"? (?:of relation .*)?does not exist')
_SCHEMA = re.compile("permission denied for schema (.+)")
_HINTS = {
    "22021": "texts of PostgreSQL cannot have the character NUL; replace it",
    "22P05": "the database has an encoding without this character; use one with the encoding UTF8",
    "25006": "ROLLBACK, and BEGIN READ WRITE; or connect to the primary server",
    "25P02": "end the open transaction with COMMIT or ROLLBACK",
    "2BP01": "drop what depends on the table first, or write into another table",
    "42501": "request the privilege from the owner",
    "53100": "the disk of the server is full",
    "53300": "the server has no connection left; close others",
    "54011": "a table of PostgreSQL has at most 1,600 columns; write fewer",
    "55P03": "another connection holds a lock that this one needs; try again",
    "57014": "the statement was stopped, or the server limits how long a statement may run",
}


def translate_error(
    error: Exception, sql: str, connection: Callable[[], PostgreSQLConnection] | None = None
) -> SourceError:
    """Translate the error of running `sql`, with a span in it if the server reports a place.

    `connection` is used to look up similar names; it must not have failed, nor have a transaction open.
    """
    diagnosis = getattr(error, "diag", None)
    message = (diagnosis and diagnosis.message_primary) or (
        str(error).splitlines() or [type(error).__name__]
    )[0]
    message = message.rstrip(".!")
    code = state(error)
    if is_lost(error):
        return ConflictError(f"the connection to the database was lost: {message}", hint="try again")
    if _SEVERAL in message:
        return not_one_statement("several statements")
    span = _span(sql, diagnosis and diagnosis.statement_position)
    hint = _HINTS.get(code) or _similar(code, message, sql, span, connection)
    if code == "2BP01" and diagnosis and diagnosis.message_detail:
        message += f": {diagnosis.message_detail.splitlines()[0].rstrip('.')}"
    hint = hint or (diagnosis and _adapt_hint(diagnosis.message_hint))
    kind = ConflictError if code in _CONFLICTS or "concurrently" in message else SourceError
    if code in DENIED:  # of a statement of ours, perhaps: its place says nothing
        kind, span = MissingRightError, None
        if denied := _SCHEMA.search(message):
            hint = f"its owner grants it by GRANT USAGE, CREATE ON SCHEMA {denied[1]} TO and the name of this account"
    return kind(message, span=span, hint=hint or None)


def not_in_parentheses(error: Exception, sql: str) -> SourceError:
    """Return the error of a text that the server accepts by itself, but not as a query in parentheses."""
    return not_a_query() if state(error) == SYNTAX else translate_error(error, "")


def _similar(
    code: str,
    message: str,
    sql: str,
    span: Span | None,
    connection: Callable[[], PostgreSQLConnection] | None,
) -> str | None:
    if connection is None or code not in (SYNTAX, TABLE, COLUMN):
        return None
    words = LEXICON.names(sql)
    names = words | {word.lower() for word in words}
    if code == SYNTAX:
        if span is None:
            return None
        asked = connection()
        return reserved_hint(sql, span, queries.reserved_words(asked), queries.names_of(asked, names))
    match = _NAME.search(message)
    if match is None:
        return None
    asked = connection()
    candidates = (
        [name for (name,) in asked.fetch_all(queries.TABLES)]
        if code == TABLE
        else queries.columns_of(asked, names)
    )
    short_name = match[1].rpartition(".")[2]
    if code == COLUMN and (exact := _other_case(short_name, candidates)):
        return f"as a name with capital letters it is written {exact}"
    return did_you_mean(short_name, candidates)


def _other_case(name_asked: str, candidates: list[str]) -> str | None:
    """Return the column that an unquoted name, which the server reads in small letters, was meant to be."""
    same = [name for name in candidates if name != name_asked and name.lower() == name_asked]
    return f'"{same[0]}"' if same else None


def _span(sql: str, position: str | None) -> Span | None:
    """Return the place of the word at a position. Positions count characters from 1."""
    if not sql or not position:
        return None
    start = int(position) - 1
    if start >= len(sql):
        last = [Span(*token.span()) for token in LEXICON.words(sql)][-1:]
        return last[0] if last else None
    token = LEXICON.token.match(sql, start)
    return Span(start, token.end() if token else start + 1)


def _adapt_hint(hint: str | None) -> str | None:
    """Return the server's hint in the form of ours: no capital at its beginning, no full stop at its end."""
    return hint[0].lower() + hint[1:].rstrip(".") if hint else None
