"""SQL for reading DuckDB. The user's query is embedded byte for byte, in parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edl.data.arrow_types import is_supported
from edl.data.names import quote_part

if TYPE_CHECKING:
    import pyarrow as pa

    from edl.sources.row_order.keyed_rows import Column

# Types with an Arrow form that loses information, costs more, or is of DuckDB alone -> type they are cast to.
READ_AS = {
    "hugeint": "BIGINT",
    "uhugeint": "UBIGINT",
    "bignum": "DOUBLE",
    "bit": "VARCHAR",
    "enum": "VARCHAR",
    "time with time zone": "VARCHAR",
}
_OF_DUCKDB_ALONE = re.compile("BIGNUM|GEOMETRY|UNION|VARIANT")  # in the name of a type, perhaps of an element
DIGITS = "DECIMAL(38, 0)"
_OF_128_BITS = ("hugeint", "uhugeint")  # sum(integer) is one, and seldom needs the bits

# Types of which results show DuckDB's own text, also inside of nested types.
DISPLAYED_AS_TEXT = frozenset(
    ("bignum", "bit", "geometry", "interval", "time with time zone", "uhugeint", "union", "variant", "varint")
)
_NESTED = ("array", "list", "map", "struct")

# The parts of each table's and view's name that a query must write, as a list.
CURRENT_DATABASE = "SELECT path FROM duckdb_databases() WHERE database_name = current_catalog()"
DATABASES = "SELECT database_name FROM duckdb_databases() WHERE NOT internal ORDER BY database_oid"
TABLES = """
    WITH names AS (
        SELECT database_name AS d, schema_name AS s, table_name AS t FROM duckdb_tables() WHERE NOT internal
        UNION ALL SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal
    )
    SELECT CASE
        WHEN d = 'temp' OR (d = current_catalog() AND s = current_schema()) THEN [t]
        WHEN d = current_catalog() THEN [s, t]
        ELSE [d, s, t]
    END AS parts FROM names WHERE NOT starts_with(t, 'sqlflow_edl_') ORDER BY len(parts), parts
"""
# The names that are tables, each with its columns.
NAMES_OF = "SELECT table_name, column_name FROM duckdb_columns() WHERE list_contains(?, lower(table_name))"
RESERVED = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"


def wide_numbers(query: str, columns: Sequence[Column]) -> tuple[list[str], str]:
    """Return the columns of 128 bits, and a query of one row: for each, the type that all its numbers fit.

    It is the type of 64 bits, or else one of 38 digits, in which ids stay apart, or else DOUBLE.
    """
    wide = {name: READ_AS[kind.id] for name, kind in columns if kind.id in _OF_128_BITS}
    types = (_find_type(quote_part(name), (narrow, DIGITS)) for name, narrow in wide.items())
    return list(wide), f"SELECT {', '.join(types)} FROM (\n{query}\n)"


def _find_type(column: str, types: Sequence[str]) -> str:
    """Return SQL of the first type that all numbers of a column fit, or DOUBLE."""
    exceeds = (f"bool_or({column} IS NOT NULL AND TRY_CAST({column} AS {kind}) IS NULL)" for kind in types)
    cases = " ".join(
        f"WHEN NOT coalesce({test}, false) THEN '{kind}'" for test, kind in zip(exceeds, types, strict=True)
    )
    return f"CASE {cases} ELSE 'DOUBLE' END"


def read_as(columns: Sequence[Column], arrow: Callable[[], pa.Schema]) -> dict[str, str]:
    """Return the types of casts of columns, by the columns' names. arrow: returns the schema of the uncast columns."""
    types = {name: READ_AS[kind.id] for name, kind in columns if kind.id in READ_AS}
    suspects = [name for name, kind in columns if name not in types and _OF_DUCKDB_ALONE.search(str(kind))]
    if suspects:
        fields = {field.name: field for field in arrow()}
        types |= {name: "VARCHAR" for name in suspects if not is_supported(fields[name])}
    return types


def cast_columns(query: str, columns: Sequence[Column], types: Mapping[str, str]) -> str:
    """Cast columns to `types`, by their names. Return the query itself if there are none."""
    if not types:
        return query
    casts = (
        f"CAST({quote_part(name)} AS {types[name]}) AS {quote_part(name)}"
        if name in types
        else quote_part(name)
        for name, _ in columns
    )
    return f"SELECT {', '.join(casts)} FROM (\n{query}\n)"


def as_displayable(relation: Any) -> Any:
    """Return the relation with texts in place of types that Arrow does not have with all their values."""
    columns = list(zip(relation.columns, relation.types, strict=True))
    if not any(map(_is_text, (kind for _, kind in columns))):
        return relation
    cells = (
        f"{f'CAST(#{place} AS VARCHAR)' if _is_text(kind) else f'#{place}'} AS {quote_part(name)}"
        for place, (name, kind) in enumerate(columns, 1)
    )
    return relation.project(", ".join(cells))


def _is_text(kind: Any) -> bool:
    if kind.id in DISPLAYED_AS_TEXT:
        return True
    parts = kind.children if kind.id in _NESTED else ()
    return any(_is_text(part) for _, part in parts if not isinstance(part, int))


def without_rows(query: str) -> str:
    return f"SELECT * FROM (\n{query}\n) LIMIT 0"
