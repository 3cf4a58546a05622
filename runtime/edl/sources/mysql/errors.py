"""Translation of MySQL's errors: the message, the place in the query if it names one, and a hint.

MySQL names a word, or the text near a syntax error. It is searched in the query, outside of strings and comments.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from edl.data.names import named_twice, reserved_hint
from edl.data.source import ConflictError, MissingRightError
from edl.errors import SourceError, Span, did_you_mean
from edl.sources.mysql import queries
from edl.sources.mysql.connection import MySQLConnection, code, is_lost
from edl.sources.words import Lexicon, not_a_query, not_one_statement

# Missing rights, and servers that only read.
DENIED = frozenset({1044, 1142, 1227, 1290, 1370, 1792, 1836, 3908, 4151})

_CONFLICTS = frozenset({1020, 1050, 1062, 1213, 1412, 1684})
SYNTAX, _EMPTY, _TABLE, _COLUMN, _AMBIGUOUS, _FUNCTION, _TWICE = 1064, 1065, 1146, 1054, 1052, 1305, 1060
_WIDE = 1117
UNDECLARED = 1327  # SELECT … INTO name, which no declaration can precede outside of routines
_TOKEN = re.compile(
    r"""(?P<skip>\s+|--(?=\s)[^\n]*|\#[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<text>'(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.|"")*"?)
      | (?P<name>`(?:[^`]|``)*`?|[^\W\d][\w$]*)
      | (?P<other>\d[\w.]*|.)""",
    re.VERBOSE | re.DOTALL,
)
LEXICON = Lexicon(_TOKEN, "`")
_STATEMENTS = frozenset(
    re.findall(
        r"\w+",
        "ALTER ANALYZE BEGIN CALL COMMIT CREATE DEALLOCATE DELETE DESC DESCRIBE DO DROP EXECUTE EXPLAIN FLUSH GRANT"
        " HANDLER INSERT KILL LOAD LOCK OPTIMIZE PREPARE RENAME REPLACE REVOKE ROLLBACK SAVEPOINT SET SHOW START"
        " TRUNCATE UNLOCK UPDATE USE XA",
    )
)
_QUERIES = ("SELECT", "WITH", "SHOW", "TABLE", "VALUES", "(")
_NEAR = re.compile(r"near '(.*)' at line (\d+)", re.DOTALL)
_HINTS = {
    1044: "request the privilege on this database, or write into another one",
    1142: "request the privilege on this table",
    1227: "request the privilege that it names",
    1059: "a name has at most 64 characters in MySQL",
    _WIDE: "a table of MySQL has at most 1,017 columns; write fewer",
    1153: "raise max_allowed_packet on the server",
    1205: "another connection holds a lock that this one needs; try again",
    1317: "the statement was stopped",
    1568: "end the open transaction with COMMIT or ROLLBACK",
    3024: "the server limits how long a statement may run",
    1969: "the server limits how long a statement may run",
}


def check_query(sql: str) -> None:
    """Raise SourceError if the text has no statement, or plainly one of another kind.

    The server reports unknown words better.
    """
    if LEXICON.first_word(sql) in _STATEMENTS:
        raise not_a_query()


def may_set_zone(sql: str) -> bool:
    """Return True if a statement may set another time zone of the session."""
    word = LEXICON.first_word(sql)
    return word in ("CALL", "EXECUTE") or (word not in _QUERIES and "time_zone" in sql.lower())


def may_have_rows(sql: str) -> bool:
    """Return True if a statement that may set a time zone may also have rows, in a zone that is not known."""
    return LEXICON.first_word(sql) != "EXECUTE"  # of one statement


def translate_error(
    error: Exception, sql: str, connection: Callable[[], MySQLConnection] | None = None
) -> SourceError:
    """Translate the error of running `sql`, with a span in it if MySQL names a word.

    `connection` is used to look up similar names.
    """
    message = str(error.args[-1] if error.args else error).rstrip(".!") or type(error).__name__
    number = code(error)
    if is_lost(error):
        return ConflictError(f"the connection to the database was lost: {message}", hint="try again")
    if number == _EMPTY:
        return not_one_statement("no statement")
    if number == SYNTAX:
        return _syntax(message, sql, connection)
    if number == UNDECLARED:
        return SourceError(message, span=_behind_into(message.rpartition(" ")[2], sql))
    if number in (_TABLE, _COLUMN, _AMBIGUOUS, _FUNCTION):
        return _translate_number(number, message, sql, connection)
    if "Too many columns" in message:  # also of the storage engine, which has its own limit
        number = _WIDE
    kind = ConflictError if number in _CONFLICTS else SourceError
    if number in DENIED:
        kind = MissingRightError
    return kind(message, hint=_HINTS.get(number))


def not_in_parentheses(error: Exception, sql: str) -> SourceError:
    """Return the error of a text that the server accepts by itself, but not as a query in parentheses."""
    if code(error) == SYNTAX:
        return not_a_query()
    if code(error) != _TWICE:
        return translate_error(error, sql)
    name = str(error.args[-1]).partition("'")[2].rpartition("'")[0]
    return named_twice(name)


def _syntax(message: str, sql: str, connection: Callable[[], MySQLConnection] | None) -> SourceError:
    """Translate a syntax error, without the long advice to read the manual."""
    match = _NEAR.search(message)
    near = match[1] if match else ""
    shown = near.splitlines()[0][:40] if near.strip() else ""
    text = f"syntax error near {shown!r}" if shown else "syntax error at the end"
    at = sql.rfind(near) if near else -1  # `near` extends to the end of the text
    if at < 0 and near:  # the server truncates a long text
        at = sql.find(near[:60])
    if at < 0:
        last = [Span(*token.span()) for token in LEXICON.words(sql)][-1:]
        return SourceError(text, span=last[0] if last else None)
    token = _TOKEN.match(sql, at)
    span = Span(at, token.end() if token else at + 1)
    names = queries.names_of(connection(), LEXICON.names(sql)) if connection is not None else []
    return SourceError(text, span=span, hint=reserved_hint(sql, span, queries.RESERVED, names, "`"))


def _behind_into(name: str, sql: str) -> Span | None:
    """Return the place of the name that follows INTO."""
    words = list(LEXICON.words(sql))
    pairs = itertools.pairwise(words)
    return next(
        (Span(*word.span()) for into, word in pairs if into[0].upper() == "INTO" and word[0] == name), None
    )


def _translate_number(
    number: int, message: str, sql: str, connection: Callable[[], MySQLConnection] | None
) -> SourceError:
    match = re.search(r"FUNCTION (\S+)", message) if number == _FUNCTION else re.search(r"'([^']*)'", message)
    name = match[1] if match else ""
    last = name.rpartition(".")[2]
    hint = None
    if connection is not None and number in (_TABLE, _COLUMN):
        asked = connection()
        candidates = (
            queries.tables(asked, name.partition(".")[0])
            if number == _TABLE
            else queries.columns_of(asked, LEXICON.names(sql))
        )
        hint = did_you_mean(last, candidates)
    parts = name.split(".")
    span = LEXICON.place(sql, (parts, parts[-1:]), table=number == _TABLE)
    return SourceError(message, span=span, hint=hint)
