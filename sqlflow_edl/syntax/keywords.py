"""Disambiguation of keywords and names, for words that the grammar accepts as either.

That is so after a comma that may end its list (`COLUMN age, label LABEL x`), and for PREDICT without a target. Then
the following words decide: a clause keyword has a body after it, a name has not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlflow_edl.syntax.lexer import Token

# that begin a clause of the query, which stands before the extended clauses
QUERY_CLAUSES = frozenset(("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "QUALIFY"))
CLAUSES = frozenset(
    ("WITH", "COLUMN", "LABEL", "TARGET", "VALIDATE", "USING", "INTO", "CMD", "CONSTRAINT", "BY")
)

_NAMES = frozenset(("word", "quoted", "string", "path"))
_ALSO_BEGINS = {"COLUMN": frozenset("*-"), "VALIDATE": frozenset("+-"), "CONSTRAINT": frozenset("+-(")}


class LazyTokens:
    """Tokens by position, read from their lexer on demand; after the end, the last one again."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._read: list[Token] = []
        self._more: Iterator[Token] = iter(tokens)

    def __getitem__(self, position: int) -> Token:
        while position >= len(self._read):
            token = next(self._more, None)
            if token is None:
                return self._read[-1]
            self._read.append(token)
        return self._read[position]

    def last(self) -> Token:
        """Return the end of the clauses, after reading them all."""
        self._read.extend(self._more)
        return self._read[-1]


def opens_clause(tokens: LazyTokens, position: int) -> bool:
    """Return True if the word at `position` opens a clause rather than names a column.

    In a run of clause keywords, such as `LABEL label INTO into`, the last with a body opens a clause, so the one
    before it is a name, and so on backwards.
    """
    end = position
    while _has_body(tokens, end):
        end += 1
    return (end - position) % 2 == 1


def _has_body(tokens: LazyTokens, position: int) -> bool:
    """Return True if a clause keyword stands there, followed by something that its clause can begin with."""
    keyword, following = tokens[position].word, tokens[position + 1]
    if keyword not in CLAUSES:
        return False
    if keyword == "WITH":
        return following.kind in _NAMES and tokens[position + 2].text in ("=", ".")
    if keyword == "VALIDATE":
        return following.word == "ON" or following.kind == "number" or following.text in ("+", "-")
    if following.word in ("AS", "FOR") and _names_something(tokens, position + 2):
        return False
    begins = following.kind in _NAMES or following.text in _ALSO_BEGINS.get(keyword, ())
    return begins or (keyword == "CONSTRAINT" and following.kind == "number")


def _names_something(tokens: LazyTokens, position: int) -> bool:
    """Return True if a plain name follows AS or FOR, which are then keywords."""
    return tokens[position].kind in ("word", "quoted") and not opens_clause(tokens, position)
