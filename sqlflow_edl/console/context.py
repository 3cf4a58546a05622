"""Position of the cursor in a statement: the typed word, the tokens before it, and the tables of the query.

Only tokens are used, no parser, because a statement that is being typed is incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.keywords import CLAUSES
from sqlflow_edl.syntax.lexer import Token, code_tokens, sql_tokens
from sqlflow_edl.syntax.split import VERBS, split

QUERIES = ("SELECT", "WITH", "FROM", "EXPLAIN", "(")
OPTIMIZES = ("MAXIMIZE", "MINIMIZE")
_BARE = ("TRAIN", "PREDICT", "LABEL", "TARGET")  # without TO
_SAME_VERB = {"ANALYZE": "EXPLAIN"}


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_NO_ALIAS = words("""
    ON USING WHERE GROUP ORDER HAVING LIMIT JOIN LEFT RIGHT INNER FULL CROSS UNION EXCEPT INTERSECT TO TRAIN PREDICT
    LABEL TARGET SET VALUES QUALIFY WINDOW OFFSET NATURAL
""")
_OPERANDS = words("SELECT FROM JOIN AS WHERE AND OR NOT ON BY IN HAVING DISTINCT , . = < > + - * /")
_WORD = re.compile(r"[\w$]*(?:\.[\w$]*)*\Z")


@dataclass(frozen=True, slots=True)
class Context:
    """Position of the cursor.

    word: the typed word, with its dots. before: the tokens before it, as keywords where possible. verb: the
    statement's verb, once its clauses have begun. clause: the last clause keyword, empty after the verb itself.
    inside: the tokens of that clause. depth: number of brackets open in it. tables: tables of the query, by
    alias and by name.
    """

    word: str
    before: Sequence[str]
    verb: str = ""
    clause: str = ""
    inside: Sequence[str] = ()
    depth: int = 0
    tables: dict[str, str] = field(default_factory=dict)

    @property
    def last(self) -> str:
        return self.before[-1] if self.before else ""

    @property
    def begins_item(self) -> bool:
        """True if an item of the clause's list is expected, outside of brackets."""
        return not self.depth and (not self.inside or self.last == ",")


def context(text: str, cursor: int, dialect: Dialect) -> Context | None:
    """Find the position of the cursor; None in a string or a comment."""
    word = _WORD.search(text, 0, cursor)
    typed = word[0] if word else ""
    start = _start(text[:cursor], dialect)
    tokens = list(sql_tokens(text[: cursor - len(typed)], start, dialect))
    if tokens and (tokens[-1].kind == "unclosed" or _in_comment(tokens[-1], text[:cursor])):
        return None
    tokens_before = [token for token in tokens if token.kind != "comment"]
    without = text[: cursor - len(typed)] + text[cursor:]  # so that the typed word is not read as an alias
    others = list(code_tokens(without, start, dialect))
    return _clauses(typed, tokens_before, dict(_tables(without, others)))


def _start(before: str, dialect: Dialect) -> int:
    """Return the start of the statement that contains the end of `before`."""
    start = 0
    for piece in split(before, dialect):
        start = piece.raw.end if piece.ended else piece.raw.start
    return start


def _in_comment(last: Token, before: str) -> bool:
    return last.kind == "comment" and not last.text.startswith("/*") and "\n" not in before[last.end :]


def _clauses(word: str, tokens: list[Token], tables: dict[str, str]) -> Context:
    before = [token.word or token.text for token in tokens]
    verb = clause = ""
    begin = depth = 0
    for place, token in enumerate(tokens):
        previous = before[place - 1] if place else ""
        depth += token.nesting
        if depth or previous == "=":
            continue
        if not verb:
            verb, clause = _verb(token.word, previous, before)
            begin = place + 1
        elif token.word in CLAUSES and previous != ",":
            clause, begin = token.word, place + 1
    inside = tuple(before[begin:]) if verb else ()
    return Context(word, before, verb, clause, inside, max(depth, 0), tables)


def _verb(word: str, previous: str, before: Sequence[str]) -> tuple[str, str]:
    """Return the verb of the word and the clause that it begins; empty if the word is part of the query."""
    if before[0] not in QUERIES:
        return "", ""
    if word in VERBS and previous == "TO":
        return _SAME_VERB.get(word, word), ""
    if word in _BARE and previous and previous not in _OPERANDS:
        return (word, word) if word in CLAUSES else (word, "")
    return "", ""


def _tables(text: str, tokens: list[Token]) -> Iterator[tuple[str, str]]:
    """Yield alias and name of each table after FROM and JOIN, names as written."""
    for place, token in enumerate(tokens):
        if token.word not in ("FROM", "JOIN", "UPDATE", "INTO"):
            continue
        end = place + 1
        while end < len(tokens) and (tokens[end].kind in ("word", "name") or tokens[end].text == "."):
            joined = end == place + 1 or "." in (tokens[end].text, tokens[end - 1].text)
            if not joined:
                break
            end += 1
        if end == place + 1:
            continue
        name = text[tokens[place + 1].start : tokens[end - 1].end]
        yield name, name
        yield name.rpartition(".")[2], name
        following = tokens[end : end + 2]
        if following and following[0].word == "AS":
            following = following[1:]
        if following and following[0].kind in ("word", "name") and following[0].word not in _NO_ALIAS:
            yield following[0].text, name
