"""Queries of PostgreSQL's catalog. Names are matched exactly; `?` stands for a parameter."""

from __future__ import annotations

import json
from collections.abc import Collection

from edl.data.source import RowEstimate
from edl.sources.postgresql.connection import PostgreSQLConnection

# The schema of new tables, and True if the connection may have temporary tables.
FACTS = (
    "SELECT current_schema(), has_database_privilege(current_database(), 'TEMP') AND NOT pg_is_in_recovery()"
)
SCHEMAS = (
    "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
    " AND has_schema_privilege(oid, 'USAGE') ORDER BY nspname"
)
# Tables and views as a query must write them.
TABLES = (
    "SELECT CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE quote_ident(nspname) || '.' END || quote_ident(relname)"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind = ANY ('{r,p,v,m,f}')"
    " AND nspname !~ '^pg_(toast|catalog)' AND nspname <> 'information_schema'"
    " AND NOT starts_with(relname, 'sqlflow_edl_')"
    " AND has_schema_privilege(n.oid, 'USAGE') ORDER BY pg_table_is_visible(c.oid) DESC, nspname, relname"
)
_READ_SECS = 15e-9  # of a byte
_RELATIONS = " FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE "
_COMMENT = "coalesce(obj_description(c.oid, 'pg_class'), '')"


def wrap_query(query: str) -> str:
    """Return a statement with the query's columns, valid only for a query."""
    return f"SELECT * FROM (\n{query}\n) AS sqlflow_edl_query"


def estimate_rows(connection: PostgreSQLConnection, query: str) -> RowEstimate:
    """Estimate the rows of the query by the statistics of the server, which does not run it."""
    [(plans,)] = connection.fetch_all(f"EXPLAIN (FORMAT JSON) {query}")
    [plan] = json.loads(plans) if isinstance(plans, str) else plans
    rows = int(plan["Plan"]["Plan Rows"])
    size = rows * int(plan["Plan"]["Plan Width"])
    return RowEstimate(rows, size, size * _READ_SECS)


def list_relations(
    connection: PostgreSQLConnection, schema: str, name: str, *, hidden: bool
) -> list[tuple[str, str, bool]]:
    """Return kind (`r` is a table) and comment of the relations with this name, and True for temporary ones.

    hidden: those too.
    """
    temporary = " OR n.oid = pg_my_temp_schema()" if hidden else ""
    return connection.fetch_all(
        f"SELECT relkind::text, {_COMMENT}, relpersistence = 't'{_RELATIONS} relname = ? AND relkind <> 'i'"
        f" AND (nspname = ?{temporary})",
        (name, schema),
    )


def tables_of_ours(connection: PostgreSQLConnection, prefix: str) -> list[tuple[str, str, str]]:
    """Return schema, name and comment of this user's tables with names that begin with `prefix`."""
    return connection.fetch_all(
        f"SELECT nspname, relname, {_COMMENT}{_RELATIONS} relkind = 'r' AND starts_with(relname, ?)"
        " AND pg_has_role(relowner, 'USAGE') ORDER BY nspname, relname",
        (prefix,),
    )


def other_owner(connection: PostgreSQLConnection, schema: str, name: str) -> str:
    """Return the owner of a table if this account does not have the owner's rights; empty if it does."""
    rows = connection.fetch_all(
        f"SELECT pg_get_userbyid(relowner){_RELATIONS} nspname = ? AND relname = ? AND relkind IN ('r', 'p')"
        " AND NOT pg_has_role(relowner, 'USAGE')",
        (schema, name),
    )
    return rows[0][0] if rows else ""


def has_schema(connection: PostgreSQLConnection, name: str) -> bool:
    return bool(connection.fetch_all("SELECT 1 FROM pg_namespace WHERE nspname = ?", (name,)))


def columns_in_order(connection: PostgreSQLConnection, schema: str, name: str) -> list[tuple[str, str]]:
    """Return the columns of one table and their types as a statement writes them."""
    return connection.fetch_all(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid"
        " JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = ? AND relname = ? AND attnum > 0"
        " AND NOT attisdropped ORDER BY attnum",
        (schema, name),
    )


def needed_columns(connection: PostgreSQLConnection, schema: str, name: str) -> list[str]:
    """Return the columns of one table that an INSERT has to give, unless a trigger of it may fill them."""
    rows = connection.fetch_all(
        "SELECT attname FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid"
        " JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE nspname = ? AND relname = ? AND attnum > 0 AND NOT attisdropped AND attnotnull AND NOT atthasdef"
        # bits of tgtype: 1 for each row, 2 before, 4 INSERT
        " AND attidentity = '' AND NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = c.oid AND tgtype & 7 = 7)"
        " ORDER BY attnum",
        (schema, name),
    )
    return [name for (name,) in rows]


def types_of(connection: PostgreSQLConnection, types: list[tuple[int, int]]) -> list[str]:
    """Return names of types as a statement writes them, from their numbers and modifiers."""
    numbers, modifiers = [pair[0] for pair in types], [pair[1] for pair in types]
    rows = connection.fetch_all(
        "SELECT format_type(o, m) FROM unnest(?::oid[], ?::int[]) WITH ORDINALITY AS t(o, m, at) ORDER BY at",
        (numbers, modifiers),
    )
    return [name for (name,) in rows]


def columns_of(connection: PostgreSQLConnection, names: Collection[str]) -> list[str]:
    """Return the columns of the tables that have one of these names, in any schema."""
    rows = connection.fetch_all(
        "SELECT DISTINCT attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relname = ANY (?)"
        " AND attnum > 0 AND NOT attisdropped",
        (sorted(names),),
    )
    return [name for (name,) in rows]


def names_of(connection: PostgreSQLConnection, names: Collection[str]) -> list[str]:
    """Return those names that are tables, and the columns of these."""
    rows = connection.fetch_all(
        "SELECT relname FROM pg_class WHERE relkind = ANY ('{r,p,v,m,f}') AND relname = ANY (?)",
        (sorted(names),),
    )
    return [*(name for (name,) in rows), *columns_of(connection, names)]


def reserved_words(connection: PostgreSQLConnection) -> set[str]:
    """Return the words that must be quoted as names."""
    return {
        word
        for (word,) in connection.fetch_all("SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')")
    }
