"""Texts in the SQL of a warehouse: names, and literals and types by sqlglot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from edl.data.names import join_quoted
from edl.errors import SourceError
from edl.sources.words import Lexicon


def _escaping(comment: str, name: str, text: str = "") -> re.Pattern[str]:
    """Return the words of a dialect with backslash escapes in texts. `comment` begins one that a line ends."""
    return re.compile(
        rf"""(?P<skip>\s+|(?:{comment})[^\n]*|/\*.*?(?:\*/|\Z))
          | (?P<text>'(?:[^'\\]|\\.|'')*'?{text})
          | (?P<name>{name}|[^\W\d][\w$]*)
          | (?P<other>\d[\w.]*|.)""",
        re.VERBOSE | re.DOTALL | re.IGNORECASE,
    )


_PLAIN_NAME = r'"(?:[^"]|"")*"?'
STANDARD = Lexicon(quotes='"`')
BACKSLASHES = Lexicon(_escaping("--", _PLAIN_NAME), '"')
SNOWFLAKE = Lexicon(_escaping("--|//", _PLAIN_NAME, r"|\$\$.*?(?:\$\$|\Z)"), '"')
BIGQUERY = Lexicon(_escaping(r"--|\#", r"`(?:[^`\\]|\\.)*`?", r'|"(?:[^"\\]|\\.)*"?'), "`")
CLICKHOUSE = Lexicon(_escaping(r"--|\#", r'"(?:[^"\\]|\\.|"")*"?|`(?:[^`\\]|\\.)*`?'), '"`')
HIVE = Lexicon(_escaping("--", r"`(?:[^`]|``)*`?", r'|"(?:[^"\\]|\\.)*"?'), "`")
_ESCAPED_NAMES = ("bigquery", "clickhouse")  # dialects with backslash escapes in names
_ESCAPED = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\0"}

# Arrow's test of a type -> the type that sqlglot writes in each dialect
_TYPES = (
    (pa.types.is_boolean, "BOOLEAN"),
    (pa.types.is_int8, "TINYINT"),
    (pa.types.is_int16, "SMALLINT"),
    (pa.types.is_int32, "INT"),
    (pa.types.is_uint64, "DECIMAL(20, 0)"),
    (pa.types.is_integer, "BIGINT"),
    (pa.types.is_float64, "DOUBLE"),
    (pa.types.is_floating, "FLOAT"),
    (pa.types.is_date, "DATE"),
    (pa.types.is_time, "TIME"),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind), "BLOB"),
)


@dataclass(frozen=True, slots=True)
class DialectTexts:
    """Texts of one dialect. `declared` has types by their name in DuckDB that sqlglot would write differently."""

    dialect: str
    quote: str
    lexicon: Lexicon
    declared: Mapping[str, str]

    def name(self, *parts: str) -> str:
        """Return a dotted name, each part in quotation marks."""
        if self.dialect in _ESCAPED_NAMES:
            parts = tuple(part.replace("\\", "\\\\").replace(self.quote, "\\" + self.quote) for part in parts)
            return ".".join(f"{self.quote}{part}{self.quote}" for part in parts)
        return join_quoted(parts, self.quote)

    def bound(self, sql: str, parameters: Sequence[object]) -> str:
        """Replace the statement's question marks by the values."""
        return self.lexicon.bound(sql, parameters, self.literal)

    def literal(self, value: object) -> str:
        """Return a value as a literal. Numbers that are not finite are NULL."""
        return str(self.literals(pa.array([value]))[0])

    def text(self, value: str) -> str:
        return str(self._texts(pa.array([value]))[0])

    def literals(self, column: pa.Array) -> pa.Array:
        """Return the values of a column as literals. Raises SourceError for a type that has none here."""
        kind = column.type
        if pa.types.is_string(kind):
            texts = self._texts(column)
        elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            texts = column.cast(pa.string())
        elif pa.types.is_floating(kind):
            finite = pc.if_else(pc.is_finite(column), column, None)
            texts = self._cast(finite.cast(pa.string()), kind)
        elif pa.types.is_temporal(kind):
            plain = column.cast(pa.timestamp("us", kind.tz)) if pa.types.is_timestamp(kind) else column
            texts = self._cast(pc.replace_substring(plain.cast(pa.string()), "Z", "+00:00"), kind)
        elif pa.types.is_null(kind):
            texts = column.cast(pa.string())
        else:
            raise SourceError(
                f"{self.dialect} cannot be given values of the type {kind}", hint="leave that column out"
            )
        return texts.fill_null("NULL")

    def _texts(self, column: pa.Array) -> pa.Array:
        for letter, escaped in _ESCAPED.items() if self.lexicon is not STANDARD else (("'", "''"),):
            column = pc.replace_substring(column, letter, escaped)
        return pc.binary_join_element_wise("'", column, "'", "")

    def _cast(self, column: pa.Array, kind: pa.DataType) -> pa.Array:
        return pc.binary_join_element_wise("CAST('", column, f"' AS {self.type(_duckdb_type(kind))})", "")

    def column(self, field: pa.Field) -> str:
        """Return the type in the declaration of a result's column."""
        return self.type(_duckdb_type(field.type))

    def type(self, duckdb: str) -> str:
        """Return the type that has this name in DuckDB."""
        if duckdb.endswith("[]"):
            inner = self.type(duckdb[:-2])
            return self.declared.get("[]", "ARRAY<{}>").format(inner)
        return self.declared.get(duckdb) or exp.DataType.build(duckdb, dialect="duckdb").sql(self.dialect)


def _duckdb_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _duckdb_type(kind.value_type) + "[]"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    return next((name for is_kind, name in _TYPES if is_kind(kind)), "TEXT")
