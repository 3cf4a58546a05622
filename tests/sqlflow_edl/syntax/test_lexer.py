"""The two lexers, and the values of quoted things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlflow_edl.syntax.dialects import DIALECTS
from sqlflow_edl.syntax.lexer import (
    clause_tokens,
    name_value,
    quoted_name,
    quoted_string,
    sql_tokens,
    string_value,
)
from tests.texts import texts

DUCKDB = DIALECTS["duckdb"]


def clause_kinds(text: str, dialect: str = "duckdb") -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in clause_tokens(text, 0, DIALECTS[dialect])][:-1]


@pytest.mark.soak
@given(texts())
def test_any_text_survives_as_a_string(text: str) -> None:
    assert string_value(quoted_string(text)) == text
    assert clause_kinds(quoted_string(text)) == [("string", quoted_string(text))]


@given(texts())
def test_any_name_survives_in_backticks(name: str) -> None:
    assert name_value(quoted_name(name)) == name
    assert clause_kinds(quoted_name(name)) == [("quoted", quoted_name(name))]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'a'", "a"),
        ("''", ""),
        ("'it''s'", "it's"),
        ("'it\\'s'", "it's"),
        ("'say \"yes\"'", 'say "yes"'),
        (r'"\n\t\r\0"', "\n\t\r\0"),
        (r'"\001\x01\u0001"', "\x01\x01\x01"),
        (r'"f\d+\.\b\w"', r"f\d+\.\b\w"),
        (r'"\\d"', r"\d"),
        (r'"\\"', "\\"),
        (r'"\ud800"', r"\ud800"),
        ('"line\nbreak"', "line\nbreak"),
    ],
)
def test_a_string_is_read_with_its_escapes(written: str, value: str) -> None:
    assert string_value(written) == value


@pytest.mark.parametrize("dialect", DIALECTS)
@given(text=st.text(st.sampled_from("'\"`\\-#/*\n ;a1([{}]).$:=")))
def test_every_text_has_tokens_in_ascending_order(dialect: str, text: str) -> None:
    for lexer in (sql_tokens, clause_tokens):
        end = 0
        for token in lexer(text, 0, DIALECTS[dialect]):
            assert end <= token.start <= token.end <= len(text)
            end = token.end


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a/b", "a/b"),
        ("host:5000/u/my-image:v0.2/M, x", "host:5000/u/my-image:v0.2/M"),
        ("10.0.0.1:5000/a@sha256:0af", "10.0.0.1:5000/a@sha256:0af"),
        ("multi:softmax,", "multi:softmax"),
        ("a/b--c", "a/b"),
        ("a/b/* c */", "a/b"),
    ],
)
def test_a_path_is_one_token(text: str, path: str) -> None:
    assert clause_kinds(text)[0] == ("path", path)


def test_a_colon_parts_key_and_value_inside_a_map() -> None:
    assert [text for _, text in clause_kinds("{a:b, c:[d:e/f]}")] == [*"{a:b,c:[d:", "e/f", "]", "}"]


def test_the_clauses_end_before_the_semicolon_outside_quotes_and_comments() -> None:
    text = "a ';' \";\" `;` -- ;\n # ;\n /* ; */ ; b"
    *_, end = clause_tokens(text, 0, DUCKDB)

    assert (end.kind, end.start) == ("end", text.rindex(";"))


def test_a_bracket_begins_a_list_or_quotes_a_name() -> None:
    assert clause_kinds("LABEL [it's]", "sqlite")[1] == ("quoted", "[it's]")
    assert clause_kinds("a = [b]", "sqlite")[2] == ("symbol", "[")
    assert clause_kinds("f([b])", "sqlite")[2] == ("symbol", "[")
    assert clause_kinds("LABEL [b]", "mysql")[1] == ("symbol", "[")


def test_a_number_is_not_the_beginning_of_a_word() -> None:
    assert clause_kinds("1 1.5e-3 .5 0. 1st 4Gi") == [
        ("number", "1"),
        ("number", "1.5e-3"),
        ("number", ".5"),
        ("number", "0."),
        ("word", "1st"),
        ("word", "4Gi"),
    ]


def test_what_is_not_closed_reaches_to_the_end_of_the_text() -> None:
    for lexer in (sql_tokens, clause_tokens):
        for text in ("x 'a; b", 'x "a; b', "x /* a; b"):
            token = list(lexer(text, 0, DUCKDB))[1]
            assert (token.kind, token.start, token.end) == ("unclosed", 2, len(text))
