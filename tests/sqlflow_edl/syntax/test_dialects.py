"""The lexical facts agree with sqlglot's tokenizers, and names of dialects are checked."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.errors import TokenError

from edl.errors import SemanticError
from sqlflow_edl.syntax.dialects import DIALECTS, Dialect, dialect_named, sqlglot_name
from sqlflow_edl.syntax.lexer import sql_tokens

ATOMS = ["'", '"', "\\", "-- x", "-", "/*", "*/", "\n", " ", ";", "a", "(", ")", "$$", "$a$", " E'", " r'"]
# Where we know better than sqlglot: DuckDB 1.4 and later read `x` as a name.
OWN = {
    "snowflake": ["//"],
    "bigquery": ["`", "#", "'''"],
    "duckdb": [],
    "postgres": [],
    "sqlite": ["`", "["],
    "mysql": ["`", "#"],
}


@pytest.mark.variants(2)
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=str)
@given(data=st.data())
def test_semicolons_are_where_sqlglot_finds_them(dialect: Dialect, data: st.DataObject) -> None:
    atoms = ATOMS + OWN.get(dialect.name, ["`"])
    text = "".join(data.draw(st.lists(st.sampled_from(atoms), min_size=1, max_size=10)))
    tokenizer = sqlglot.Dialect.get_or_raise(sqlglot_name(dialect))
    try:
        theirs = [token.start for token in tokenizer.tokenize(text) if token.token_type.name == "SEMICOLON"]
    except TokenError:
        return
    tokens = list(sql_tokens(text, 0, dialect))
    if tokens and tokens[-1].kind == "unclosed" and tokens[-1].text.startswith("/*"):
        return  # sqlglot lets some nested comments end at the end of the text
    if dialect.nested_comments and "/*/*" in text:
        return  # sqlglot overlooks a comment that begins where the one around it does; DuckDB does not
    if dialect.name == "clickhouse" and "a$" in text:
        return  # sqlglot begins a text inside of a name

    assert [token.start for token in tokens if token.kind == "semicolon"] == theirs


def test_the_semicolons_of_duckdb_itself_are_ours() -> None:
    import duckdb

    program = (
        "SELECT 'a;''b'; SELECT $x$ ; $$ $x$; SELECT E'\\';' /* /* ; */ ; */; SELECT 1 AS \"a;b\" -- ;\n;"
    )
    ours = [token for token in sql_tokens(program, 0, DIALECTS["duckdb"]) if token.kind == "semicolon"]

    assert len(duckdb.extract_statements(program)) == len(ours) == 4


def test_a_dialect_is_found_whatever_its_case() -> None:
    assert dialect_named("MySQL").name == "mysql"


def test_a_comment_at_the_start_of_another_is_nested_as_in_duckdb() -> None:
    import duckdb

    program = "SELECT 1 /*/**/;*/ AS x"
    ours = [token for token in sql_tokens(program, 0, DIALECTS["duckdb"]) if token.kind == "semicolon"]

    assert (len(duckdb.extract_statements(program)), ours) == (1, [])


def test_an_unknown_dialect_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(SemanticError) as caught:
        dialect_named("postgress")

    assert caught.value.message == "unknown SQL dialect 'postgress'"
    assert caught.value.hint == "did you mean postgres?"


def test_every_dialect_has_a_reader_in_sqlglot() -> None:
    for dialect in DIALECTS.values():
        assert sqlglot.parse_one("SELECT a FROM t", read=sqlglot_name(dialect)).sql() == "SELECT a FROM t"
