"""Lexical facts of each database's SQL that the lexer needs: its quotes and comments.

They suffice to cut statements from a program, and the SELECT from the extended clauses; the rest of a dialect is the
database's. `tests/sqlflow_edl/syntax/test_dialects.py` compares them with sqlglot's tokenizers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from edl.errors import SemanticError, did_you_mean


@dataclass(frozen=True, slots=True)
class Dialect:
    """Lexical facts of one dialect. sqlglot: its name in sqlglot."""

    name: str
    sqlglot: str
    string_quotes: str = "'"
    name_quotes: str = '"`'  # `[` stands for [x]
    hash_comments: bool = False
    dash_needs_space: bool = False  # MySQL: `1--1` is 2, `-- x` is a comment
    nested_comments: bool = True
    return_ends_comment: bool = True  # a lone carriage return ends a `--` comment
    backslash_escapes: bool = False  # in every string
    e_strings: bool = False  # E'…' has backslash escapes
    raw_strings: bool = False  # r'…' has none
    dollar_quotes: bool = False  # $tag$ … $tag$
    dollar_tags: bool = True  # the tag may have letters
    slash_comments: bool = False  # // … to the end of the line
    triple_quotes: bool = False  # ''' … ''', with quotes and line ends inside
    small_names: bool = False  # a name without quotation marks is read in small letters

    @property
    def double_quotes_name(self) -> bool:
        """True if "x" is a name in this dialect, not a text."""
        return '"' in self.name_quotes

    @property
    def bracket_quotes_name(self) -> bool:
        """True if [x] is a name in this dialect."""
        return "[" in self.name_quotes


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect("duckdb", "duckdb", e_strings=True, dollar_quotes=True),
        Dialect(
            "postgres", "postgres", name_quotes='"', e_strings=True, dollar_quotes=True, small_names=True
        ),
        Dialect("sqlite", "sqlite", name_quotes='"`[', nested_comments=False, return_ends_comment=False),
        Dialect(
            "mysql",
            "mysql",
            string_quotes="'\"",
            name_quotes="`",
            hash_comments=True,
            dash_needs_space=True,
            nested_comments=False,
            return_ends_comment=False,
            backslash_escapes=True,
        ),
        Dialect(
            "redshift",
            "redshift",
            name_quotes='"',
            backslash_escapes=True,
            dollar_quotes=True,
            small_names=True,
        ),
        Dialect("trino", "trino", name_quotes='"', nested_comments=False),
        Dialect(
            "snowflake",
            "snowflake",
            name_quotes='"',
            nested_comments=False,
            backslash_escapes=True,
            dollar_quotes=True,
            dollar_tags=False,
            slash_comments=True,
        ),
        Dialect(
            "bigquery",
            "bigquery",
            string_quotes="'\"",
            name_quotes="`",
            hash_comments=True,
            nested_comments=False,
            backslash_escapes=True,
            raw_strings=True,
            triple_quotes=True,
        ),
        Dialect("clickhouse", "clickhouse", hash_comments=True, backslash_escapes=True, dollar_quotes=True),
        Dialect("hive", "hive", string_quotes="'\"", name_quotes="`", backslash_escapes=True),
        Dialect("maxcompute", "maxcompute", string_quotes="'\"", name_quotes="`", backslash_escapes=True),
        Dialect(
            "spark", "spark", string_quotes="'\"", name_quotes="`", backslash_escapes=True, raw_strings=True
        ),
    )
}


def dialect_named(name: str) -> Dialect:
    """Return the dialect of that name, case ignored. Raises SemanticError with the nearest name if there is none."""
    try:
        return DIALECTS[name.casefold()]
    except KeyError:
        hint = did_you_mean(name, DIALECTS)
        raise SemanticError(f"unknown SQL dialect {name!r}", hint=hint) from None


@cache
def sqlglot_name(dialect: Dialect) -> str:
    """Return the dialect's name in the installed sqlglot; MaxCompute without its plug-in is read as Hive."""
    from sqlglot import Dialect as SqlglotDialect

    return dialect.sqlglot if SqlglotDialect.get(dialect.sqlglot) else "hive"
