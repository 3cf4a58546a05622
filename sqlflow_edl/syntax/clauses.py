"""Parser of the extended clauses: from tokens to a tree of the grammar's rules.

The parser is fed token by token, and lists before each the token types it can take: so a keyword is a keyword only
where the grammar allows one, and a text in double quotes is a name where the dialect quotes names so and only a name
is allowed. The first token that does not fit raises a readable error with a hint. Lark only parses, by the LALR tables
of grammar/extended.lark, which are built once, when the first extended statement is read.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Tree
from lark import Token as LarkToken
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from edl.errors import Span, StatementSyntaxError
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.error_messages import complaint
from sqlflow_edl.syntax.keywords import CLAUSES, LazyTokens, opens_clause

DEEPEST = 32  # nested brackets

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_TYPES = {"path": "PATH", "number": "NUMBER", "query": "QUERY", "quoted": "QUOTED"}
_COMPARISONS = ("<", "<=", ">", ">=", "<>", "!=", "==")


class _NoLexer(Lexer):
    """Lexer that does nothing: tokens are fed to the parser directly."""

    __future_interface__ = 1

    def __init__(self, conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[LarkToken]:
        raise NotImplementedError


@dataclass(frozen=True)
class Grammar:
    parser: Lark
    keywords: frozenset[str]  # each is also the name of its terminal
    symbols: dict[str, str]  # text -> terminal


@cache
def extended_grammar() -> Grammar:
    """Return the grammar of the extended clauses; the first call takes about 0.1 s."""
    text = files("sqlflow_edl.grammar").joinpath("extended.lark").read_text(encoding="utf-8")
    with _no_collection():
        parser = Lark(text, parser="lalr", lexer=_NoLexer, propagate_positions=True, maybe_placeholders=False)
    fixed = {terminal.pattern.value: terminal.name for terminal in parser.terminals}
    symbols = {text: name for text, name in fixed.items() if not text.isalpha()}
    return Grammar(
        parser=parser,
        keywords=frozenset(text for text in fixed if text.isalpha()),
        symbols=symbols | dict.fromkeys(_COMPARISONS, "COMPARISON"),
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disable garbage collection while the tables are built.

    All their objects stay, and looking for garbage among them takes a third of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def parse_clauses(tokens: LazyTokens, dialect: Dialect) -> Tree[LarkToken]:
    """Return the tree of the clauses. Raises StatementSyntaxError at the first token that does not fit."""
    grammar = extended_grammar()
    parser: Any = grammar.parser.parse_interactive()
    depth = position = 0
    while (token := tokens[position]).kind != "end":
        choices = parser.choices()
        kind = _type(tokens, position, choices, grammar, dialect)
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth > DEEPEST:
            raise _too_deep(token.start)
        if kind not in choices:
            raise complaint(tokens, position, parser.accepts())
        try:
            parser.feed_token(LarkToken(kind, token.text, start_pos=token.start, end_pos=token.end))
        except UnexpectedToken:
            raise complaint(tokens, position, parser.accepts()) from None
        position += 1
    try:
        tree: Tree[LarkToken] = parser.feed_eof()
    except UnexpectedToken:
        raise complaint(tokens, position, parser.accepts()) from None
    return tree


def _type(
    tokens: LazyTokens, position: int, choices: Collection[str], grammar: Grammar, dialect: Dialect
) -> str:
    """Return the terminal of the token in this context, or a type unknown to the parser if it is none."""
    token = tokens[position]
    if token.kind == "word":
        return _word_type(tokens, position, choices, grammar)
    if token.kind == "string":
        double = token.text[0] == '"' and dialect.double_quotes_name
        is_name = "STRING" not in choices or tokens[position + 1].text == "."
        return "QUOTED" if double and is_name else "STRING"
    if token.kind == "symbol":
        return grammar.symbols.get(token.text, token.text)
    return _TYPES.get(token.kind, token.kind)


def _word_type(tokens: LazyTokens, position: int, choices: Collection[str], grammar: Grammar) -> str:
    keyword = tokens[position].word
    if keyword not in grammar.keywords or keyword not in choices:
        return "WORD"
    if "WORD" not in choices:
        return keyword
    if keyword in CLAUSES:
        return keyword if opens_clause(tokens, position) else "WORD"
    if keyword == "APPEND":  # PREDICT append names a table; a list that APPEND follows may end in a comma
        after_comma = tokens[position - 1].text == "," and tokens[position + 1].text not in ("=", ".")
        return keyword if after_comma else "WORD"
    if keyword == "IF":
        return keyword if tokens[position + 1].word == "EXISTS" else "WORD"
    return "WORD" if tokens[position + 1].text in (".", "(") else keyword


def _too_deep(start: int) -> StatementSyntaxError:
    return StatementSyntaxError(
        "the brackets are nested too deeply",
        span=Span(start, start + 1),
        hint=f"at most {DEEPEST} may be open at once",
    )
