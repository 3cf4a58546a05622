"""Words of SQL texts: the kind of a statement, its parameters, and the place of a name in it for an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from edl.data.names import place_of
from edl.errors import SourceError, Span

_STANDARD = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<text>x?'(?:[^']|'')*'?)
      | (?P<name>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?|[^\W\d][\w$]*)
      | (?P<other>\d[\w.]*|.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_STATEMENTS = frozenset(
    re.findall(
        r"\w+",
        "ADD ALTER ANALYZE ATTACH BEGIN CALL CLONE COMMIT COPY COUNT CREATE DECLARE DELETE DESC DESCRIBE DETACH DROP"
        " EXECUTE EXISTS EXPLAIN EXPORT GRANT IMPORT INSERT INSTALL KILL LIST LOAD MERGE MSCK OPTIMIZE PRAGMA"
        " PREPARE PURGE PUT READ RENAME REPAIR RESET RESTORE REVOKE ROLLBACK SET SHOW SYSTEM TRUNCATE TUNNEL"
        " UNDO UNDROP UNLOAD UNSET UPDATE USE VACUUM",
    )
)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Words of one dialect.

    token: pattern of a word with the groups skip (white space and comments), text, name and other. quotes: opening
    quotation marks of names.
    """

    token: re.Pattern[str] = _STANDARD
    quotes: str = '"`['

    def words(self, sql: str) -> Iterator[re.Match[str]]:
        """Yield the tokens of a statement without white space and comments; `lastgroup` is their kind."""
        return (token for token in self.token.finditer(sql) if token.lastgroup != "skip")

    def first_word(self, sql: str) -> str:
        """Return the first word in capitals. Raises SourceError if the text holds no statement."""
        word = next((token[0] for token in self.words(sql) if token[0] != ";"), "")
        if not word:
            raise not_one_statement("no statement")
        return word.upper()

    def one_statement(self, sql: str) -> None:
        """Raise SourceError if the text holds no statement, or several."""
        count, inside = 0, False
        for token in self.words(sql):
            if token[0] == ";":
                inside = False
            elif not inside:
                inside = True
                count += 1
        if count != 1:
            raise not_one_statement(f"{count} statements" if count else "no statement")

    def one_query(self, sql: str) -> str:
        """Return the query in a form allowed in parentheses, on lines of its own.

        Raises SourceError unless it is one query, without parameters.
        """
        self.one_statement(sql)
        if self.first_word(sql) in _STATEMENTS:  # the database reports unknown words, with their place
            raise not_a_query()
        depth, words = 0, list(self.words(sql))
        for word in words:
            depth += {"(": 1, ")": -1}.get(word[0], 0)
            if depth < 0:
                raise SourceError("a parenthesis is closed that was not opened")
            if word[0] == "?":
                raise SourceError("a query has no parameters here", hint="write the value in the place of ?")
        return sql[: [word for word in words if word[0] != ";"][-1].end()]

    def bound(self, sql: str, parameters: Sequence[object], literal: Callable[[object], str]) -> str:
        """Replace the statement's question marks by literals of the values."""
        values = iter(parameters)
        parts, at = [], 0
        for word in self.words(sql):
            if word[0] == "?" and parameters:
                parts += [sql[at : word.start()], literal(next(values))]
                at = word.end()
        return "".join([*parts, sql[at:]])

    def bare(self, token: re.Match[str]) -> str:
        """Return the name that a token means, without its quotation marks."""
        text = token[0]
        if token.lastgroup != "name" or text[0] not in self.quotes:
            return text
        return text[1:-1] if text[0] == "[" else text[1:-1].replace(text[0] * 2, text[0])

    def names(self, sql: str) -> set[str]:
        """Return all words that can be names."""
        return {self.bare(token) for token in self.words(sql) if token.lastgroup == "name"}

    def place(self, sql: str, names: Iterable[Sequence[str]], *, table: bool) -> Span | None:
        """Return the place of the first of the names that occurs; see `edl.data.names.place_of`."""
        return place_of(names, list(self.words(sql)), self.bare, table=table)


def strip_end(query: str) -> str:
    """Return the query without its terminator, in a form allowed in parentheses."""
    return query.rstrip().rstrip(";")


def not_one_statement(what: str) -> SourceError:
    return SourceError(f"one statement is expected here, this text holds {what}")


def not_a_query() -> SourceError:
    return SourceError("this statement is not a query, it has no rows", hint="write a SELECT")


def ended_result_error() -> SourceError:
    """Return the error for a result that was not read to its end before the next statement."""
    return SourceError("this result ended when another statement ran on its connection")
