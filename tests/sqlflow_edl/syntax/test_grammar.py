"""The grammar as package data, and the parser that is built of it."""

from __future__ import annotations

from importlib.resources import files

from sqlflow_edl.syntax.clauses import extended_grammar
from sqlflow_edl.syntax.keywords import CLAUSES
from sqlflow_edl.syntax.split import VERBS


def test_the_grammar_is_package_data() -> None:
    assert files("sqlflow_edl.grammar").joinpath("extended.lark").is_file()


def test_the_parser_is_built_once() -> None:
    assert extended_grammar() is extended_grammar()


def test_the_keywords_that_the_splitter_looks_for_are_the_grammars() -> None:
    assert CLAUSES | set(VERBS) <= extended_grammar().keywords


def test_every_symbol_of_the_grammar_has_its_terminal() -> None:
    symbols = extended_grammar().symbols

    assert {symbols[text] for text in ("=", ",", "(", "{", "<=")} == {
        "EQUAL",
        "COMMA",
        "LPAR",
        "LBRACE",
        "COMPARISON",
    }
