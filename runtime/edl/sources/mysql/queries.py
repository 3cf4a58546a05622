"""Catalog queries for MySQL. Names are matched as the server matches them."""

from __future__ import annotations

import re
import time
from contextlib import suppress

import pyarrow as pa

from edl.data.names import format_name
from edl.data.source import RowEstimate
from edl.sources.mysql.connection import ERRORS, MySQLConnection, literal
from edl.sources.mysql.types import columns, schema
from edl.sources.pinning_cost import PROBE_SECS, SAMPLED_ROWS, row_size

OURS = "sqlflow_edl_"
_TOP = (b"SIMPLE", b"PRIMARY", b"UNION")  # parts of a query that yield its rows
_READ_SECS = 40e-9  # of a byte

# Reserved words, which must be quoted as names.
RESERVED = frozenset(
    re.findall(
        r"\w+",
        "add all alter analyze and as asc asensitive before between bigint binary blob both by call cascade case"
        " change char character check collate column condition constraint continue convert create cross current_date"
        " current_time current_timestamp current_user cursor database databases day_hour day_minute day_second dec"
        " decimal declare default delayed delete desc describe deterministic distinct distinctrow div double drop dual"
        " each else elseif empty enclosed escaped except exists exit explain false fetch float for force foreign from"
        " fulltext function generated grant group grouping groups having high_priority if ignore in index infile inner"
        " inout insensitive insert int integer intersect interval into is iterate join key keys kill lag lead leading"
        " leave left like limit linear lines load localtime localtimestamp lock long longblob longtext loop"
        " low_priority match mediumblob mediumint mediumtext mod modifies natural not null numeric of on optimize"
        " option optionally or order out outer outfile over partition precision primary procedure purge range rank"
        " read reads real recursive references regexp release rename repeat replace require resignal restrict return"
        " revoke right rlike row row_number rows schema schemas select sensitive separator set show signal smallint"
        " spatial specific sql sqlexception sqlstate sqlwarning ssl starting stored straight_join system table"
        " terminated then tinyblob tinyint tinytext to trailing trigger true undo union unique unlock unsigned update"
        " usage use using utc_date utc_time utc_timestamp values varbinary varchar varying virtual when where while"
        " window with write xor zerofill",
    )
)


def wrap_query(query: str) -> str:
    """Return a statement with the query's columns and no rows, valid only for a query."""
    return f"SELECT * FROM (\n{query}\n) AS sqlflow_edl_query LIMIT 0"


def estimate_rows(connection: MySQLConnection, query: str) -> RowEstimate:
    """Estimate the rows of the query: counted while that is quick, else at most as many as its tables have.

    Raises pymysql.err.Error as the query does.
    """
    rows, seconds = _most_rows(connection, query), None
    width = _row_size(connection, query)
    is_counted = False
    began = time.monotonic()
    with suppress(*ERRORS):
        [(counted,)] = connection.fetch_all(_limit_time(f"COUNT(*) FROM (\n{query}\n) AS sqlflow_edl_query"))
        rows, is_counted = int(counted), True
        seconds = time.monotonic() - began + rows * width * _READ_SECS
    return RowEstimate(rows, rows * width, seconds, is_counted=is_counted, is_bound=not is_counted)


def _most_rows(connection: MySQLConnection, query: str) -> int:
    """Return how many rows the server expects without grouping and limits: the product of the tables' rows."""
    total: dict[bytes, float] = {}
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {query}")
        names = [name for name, *_ in cursor.description]
        steps = [dict(zip(names, step, strict=True)) for step in cursor.fetchall()]
    for step in steps:
        if step["rows"] is not None and step["select_type"] in _TOP:
            share = float(step.get("filtered") or 100) / 100
            total[step["id"]] = total.get(step["id"], 1) * int(step["rows"]) * share
    return round(sum(total.values()))


def _row_size(connection: MySQLConnection, query: str) -> float:
    with connection.cursor() as cursor:
        cursor.execute(_limit_time(f"* FROM (\n{query}\n) AS sqlflow_edl_query LIMIT {SAMPLED_ROWS}"))
        kinds = schema(columns(cursor._result.fields)).types
        rows = cursor.fetchall()
    texts = [pa.types.is_string(kind) or pa.types.is_binary(kind) for kind in kinds]
    sizes = [row_size(value if text else 0 for value, text in zip(row, texts, strict=True)) for row in rows]
    return sum(sizes) / max(1, len(sizes))


def _limit_time(selected: str) -> str:
    """Return a query that the server stops when it has taken too long."""
    mariadb = f"/*M! SET STATEMENT max_statement_time = {PROBE_SECS} FOR */"
    return f"{mariadb} SELECT /*+ MAX_EXECUTION_TIME({round(1000 * PROBE_SECS)}) */ {selected}"


def prepare_query(query: str, connection: MySQLConnection) -> str:
    """Return a statement that makes the server parse the query without running it."""
    return f"PREPARE sqlflow_edl_query FROM {literal(query, connection)}"


def table(connection: MySQLConnection, database: str, name: str) -> tuple[str, str, str] | None:
    """Return kind (`BASE TABLE`, `VIEW`, …), comment and engine of the table or view with this name, or None."""
    rows = connection.fetch_all(
        "SELECT table_type, table_comment, COALESCE(engine, '') FROM information_schema.tables WHERE"
        f" table_schema = {literal(database, connection)} AND table_name = {literal(name, connection)}"
    )
    return (rows[0][0].decode(), rows[0][1].decode(), rows[0][2].decode()) if rows else None


def tables_of_ours(connection: MySQLConnection, database: str, prefix: str) -> list[tuple[str, str]]:
    """Return name and comment of the tables with names that begin with `prefix`."""
    pattern = prefix.replace("_", r"\_") + "%"
    rows = connection.fetch_all(
        "SELECT table_name, table_comment"
        f" FROM information_schema.tables WHERE table_schema = {literal(database, connection)}"
        f" AND table_type = 'BASE TABLE' AND table_name LIKE {literal(pattern, connection)} ORDER BY table_name"
    )
    return [(name.decode(), text.decode()) for name, text in rows]


def tables(connection: MySQLConnection, database: str) -> list[str]:
    """Return the names of tables and views of a database as a query must write them."""
    rows = connection.fetch_all(
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = {literal(database, connection)}"
        " AND table_name NOT LIKE 'sqlflow\\_edl\\_%' ORDER BY table_name"
    )
    return [format_name((name.decode(),), RESERVED, "`") for (name,) in rows]


def columns_of(connection: MySQLConnection, names: set[str]) -> list[str]:
    """Return the columns of the tables that have one of these names, in any database."""
    if not names:
        return []
    listed = ", ".join(literal(name, connection) for name in sorted(names))
    rows = connection.fetch_all(
        f"SELECT DISTINCT column_name FROM information_schema.columns WHERE table_name IN ({listed})"
    )
    return [name.decode() for (name,) in rows]


def names_of(connection: MySQLConnection, names: set[str]) -> list[str]:
    """Return those names that are tables of this database, and the columns of these."""
    listed = ", ".join(literal(name, connection) for name in sorted(names)) or "NULL"
    rows = connection.fetch_all(
        f"SELECT table_name, column_name FROM information_schema.columns WHERE table_name IN ({listed})"
        " AND table_schema = DATABASE()"
    )
    return [name.decode() for row in rows for name in row]


def columns_in_order(connection: MySQLConnection, database: str, name: str) -> list[str]:
    """Return the columns of one table that a `SELECT *` shows."""
    return _columns(connection, database, name, "extra NOT LIKE '%INVISIBLE%' ORDER BY ordinal_position")


def long_texts(connection: MySQLConnection, database: str, name: str) -> list[str]:
    """Return the LONGTEXT columns of one table."""
    return _columns(connection, database, name, "data_type = 'longtext'")


def needed_columns(connection: MySQLConnection, database: str, name: str) -> list[str]:
    """Return the columns of one table that an INSERT has to give, unless a trigger of it may fill them."""
    return _columns(
        connection,
        database,
        name,
        "is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%'"
        " AND COALESCE(generation_expression, '') = '' AND NOT EXISTS (SELECT 1 FROM information_schema.triggers"
        " WHERE event_object_schema = table_schema AND event_object_table = table_name"
        " AND event_manipulation = 'INSERT' AND action_timing = 'BEFORE') ORDER BY ordinal_position",
    )


def _columns(connection: MySQLConnection, database: str, name: str, which: str) -> list[str]:
    rows = connection.fetch_all(
        "SELECT column_name FROM information_schema.columns WHERE"
        f" table_schema = {literal(database, connection)} AND table_name = {literal(name, connection)}"
        f" AND {which}"
    )
    return [column.decode() for (column,) in rows]
