"""SQL for reading DuckDB. The user's query is embedded byte for byte, in parentheses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from edl.data.names import quoted

if TYPE_CHECKING:
    from edl.sources.row_order import Column

# Types whose Arrow form loses information or costs more -> type they are cast to. sum(integer) is a HUGEINT.
READ_AS = {
    "hugeint": "BIGINT",
    "uhugeint": "UBIGINT",
    "bit": "VARCHAR",
    "enum": "VARCHAR",
    "time with time zone": "VARCHAR",
}

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


def plain(query: str, columns: Sequence[Column]) -> str:
    """Cast columns of types that Arrow cannot hold. Return the query itself if there are none."""
    if not any(kind.id in READ_AS for _, kind in columns):
        return query
    casts = (
        f"CAST({quoted(name)} AS {READ_AS[kind.id]}) AS {quoted(name)}"
        if kind.id in READ_AS
        else quoted(name)
        for name, kind in columns
    )
    return f"SELECT {', '.join(casts)} FROM (\n{query}\n)"


def without_rows(query: str) -> str:
    return f"SELECT * FROM (\n{query}\n) LIMIT 0"
