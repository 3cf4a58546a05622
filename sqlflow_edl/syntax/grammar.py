"""LALR parser of grammar/extended.lark, built once, when the first extended statement is read.

Lark only parses: the tokens come from `sqlflow_edl.syntax.lexer`, and `clauses` feeds them one by one, because the
type of a word depends on the terminals that the parser accepts.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark
from lark.lexer import Lexer, Token


class _NoLexer(Lexer):
    """Lexer that does nothing: tokens are fed to the parser directly."""

    __future_interface__ = 1

    def __init__(self, conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        raise NotImplementedError


@dataclass(frozen=True)
class Grammar:
    parser: Lark
    keywords: frozenset[str]  # each is also the name of its terminal
    symbols: dict[str, str]  # text -> terminal


_COMPARISONS = ("<", "<=", ">", ">=", "<>", "!=", "==")


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
