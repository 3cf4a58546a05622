"""Queries and INSERTs, run by DuckDB over the tables as Arrow data.

sqlglot reads them as Hive's SQL. A column of a result that has the name and the physical type of a column of a table
keeps its declared type: so `SELECT *` of a varchar(5) is one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from functools import cache

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from tests.maxcompute.column_types import Column, ColumnType, type_of_duckdb
from tests.maxcompute.definitions import Cursor, define, partition_values
from tests.maxcompute.storage import Project, RefusedError, Table

_STRING = ColumnType("string")
_MACROS = (
    "CREATE MACRO conv(digits, f, t) AS CAST(CAST('0x' || digits AS UBIGINT) AS VARCHAR)",
    "CREATE MACRO getdate() AS current_timestamp",
)
LONGEST = 15.0  # seconds of a query: it may have been interrupted, and all requests wait for its end
_SETTING = re.compile(r"\s*SET\s+([\w.]+)\s*=\s*([^;\n]*);?\s*", re.IGNORECASE)
_FIRST_WORDS = ("SELECT", "WITH", "VALUES", "FROM")
_MISSING_COLUMN = re.compile(r'Referenced column "(.+?)" not found|does not have a column named "(.+?)"')
_MISSING_FUNCTION = re.compile(r"Function with name \"?(\w+)\"? does not exist")


def run(project: Project, text: str, settings: dict[str, str]) -> Table | None:
    """Run one statement; the columns and rows of a query. RefusedError: in the words of MaxCompute."""
    while found := _SETTING.match(text):
        settings = settings | {found[1]: found[2].strip()}
        text = text[found.end() :]
    text = _uncommented(text).strip().rstrip(";").strip()
    zone = settings.get("odps.sql.timezone", "Asia/Shanghai")
    if define(project, text, lambda query: select(project, query, zone)):
        return None
    if cursor := _insert(text):
        _run_insert(project, cursor, zone)
        return None
    if found := re.match(r"SHOW\s+TABLES$", text, re.IGNORECASE):
        names = [f"ALIYUN$owner:{name}" for name in sorted(project.tables)]
        return _lines(names)
    if found := re.match(r"DESC(?:RIBE)?\s+`?(\w+)`?$", text, re.IGNORECASE):
        return _lines(f"| {column.name} | {column.type} |" for column in project.table(found[1]).columns)
    return select(project, text, zone)


def select(project: Project, text: str, zone: str) -> Table:
    """The rows of a query as a table without a name."""
    tree = _parsed(text)
    connection = _connection()
    declared = _show_tables(connection, project, tree, text, zone)
    connection.execute(f"SET TimeZone = '{zone}'")
    limit = threading.Timer(LONGEST, connection.interrupt)
    limit.start()
    try:
        relation = connection.sql(tree.sql("duckdb"))
        columns = [
            _column(name, kind, declared) for name, kind in zip(relation.columns, relation.types, strict=True)
        ]
        rows = relation.to_arrow_table()
    except duckdb.Error as error:
        raise _translated(error, text) from None
    finally:
        limit.cancel()
    found = Table("", columns)
    found.parts[()] = from_duckdb(rows, columns)
    return found


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One for all statements: the double runs them one after another."""
    connection = duckdb.connect(config={"threads": 1})
    for macro in _MACROS:
        connection.execute(macro)
    return connection


@cache
def _as_duckdb_says(kind: ColumnType) -> str:
    return str(_connection().sql(f"SELECT NULL::{kind.duckdb}").types[0])


def from_duckdb(rows: pa.Table, columns: list[Column]) -> pa.Table:
    arrays = []
    for array, column in zip(rows.columns, columns, strict=True):
        kind = column.type.arrow
        if pa.types.is_timestamp(kind) and array.type.tz:
            array = array.cast(pa.timestamp(array.type.unit, "UTC")).cast(pa.timestamp(array.type.unit))
        arrays.append(_cast(array, kind))
    return pa.table(arrays, [column.name for column in columns]).combine_chunks()


def _cast(array: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        return array.cast(kind, safe=False)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.chunked_array([pa.array(array.to_pylist(), kind)], kind)


def _parsed(text: str) -> exp.Expression:
    try:
        trees = [tree for tree in sqlglot.parse(text, read="hive") if tree is not None]
    except sqlglot.errors.SqlglotError as error:
        raise _syntax(error, text) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query | exp.Values):
        raise RefusedError(
            400, "ODPS-0130161", f"[1,1] Parse exception - invalid token '{text.split(' ')[0]}'"
        )
    _check_names(trees[0])
    for kind in trees[0].find_all(exp.DataType):
        if kind.this in (exp.DataType.Type.DATETIME, exp.DataType.Type.TIMESTAMP):
            kind.set("this", exp.DataType.Type.TIMESTAMPTZ)
    return trees[0]


def _show_tables(
    connection: duckdb.DuckDBPyConnection, project: Project, tree: exp.Expression, text: str, zone: str
) -> list[Column]:
    """Let DuckDB see the tables that the query names; all their columns."""
    inside = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    declared: list[Column] = []
    shown: set[str] = set()
    for node in tree.find_all(exp.Table):
        written, name = node.name, node.name.lower()
        if not node.db and (name in inside or not name):
            continue
        node.set("db", None)
        node.set("catalog", None)
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
        node.set("this", exp.to_identifier(f"of_project_{name}"))
        if name in project.tables:
            table = project.tables[name]
            declared += [*table.columns, *table.partition_columns]
            if name not in shown:
                shown.add(name)
                _show(connection, project, table, zone)
        else:
            raise RefusedError(
                400,
                "ODPS-0130131",
                f"{_place(text, written, table=True)} Table not found"
                f" - table {project.name}.{name} cannot be resolved",
            )
    return declared


def _show(connection: duckdb.DuckDBPyConnection, project: Project, table: Table, zone: str) -> None:
    whole = select(project, table.view, zone).parts[()] if table.view else _whole(table)
    connection.register(f"of_project_{table.name.lower()}", whole.cast(_zoned(whole.schema, table)))


def _zoned(schema: pa.Schema, table: Table) -> pa.Schema:
    """The schema with the zone of moments, which DuckDB then knows for what they are."""
    kinds = [column.type.zoned for column in (*table.columns, *table.partition_columns)]
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def _whole(table: Table) -> pa.Table:
    """All partitions, with their values as the last columns."""
    parts = []
    for spec, rows in sorted(table.parts.items()):
        for column, value in zip(table.partition_columns, spec, strict=True):
            values = pa.repeat(pa.scalar(value), rows.num_rows).cast(column.type.arrow)
            rows = rows.append_column(column.name, values)
        parts.append(rows)
    names = [(c.name, c.type.arrow) for c in (*table.columns, *table.partition_columns)]
    return pa.concat_tables([pa.schema(names).empty_table(), *parts])


def _column(name: str, kind: object, declared: list[Column]) -> Column:
    for column in declared:
        if column.name.lower() == name.lower() and _as_duckdb_says(column.type) == str(kind):
            return Column(name.lower(), column.type)
    return Column(name.lower(), type_of_duckdb(kind))


def _insert(text: str) -> Cursor | None:
    cursor = Cursor(text)
    return cursor if cursor.take(r"(?=INSERT\s+(INTO|OVERWRITE))") else None


def _run_insert(project: Project, cursor: Cursor, zone: str) -> None:
    overwrite = cursor.need(r"INSERT\s+(INTO|OVERWRITE)")[1].upper() == "OVERWRITE"
    cursor.take("TABLE")
    table = project.table(cursor.name())
    partitioned = cursor.take(r"PARTITION\s*\(")
    named = bool(partitioned) and re.match(r"`?\w+`?\s*[,)]", cursor.text)  # the rows have the values
    if named:
        cursor.need(r"[^)]*\)")
    given = partition_values(cursor) if partitioned and not named else {}
    spec = () if named else table.spec(given)
    columns = [*table.columns, *table.partition_columns] if named else table.columns
    if re.match("VALUES", cursor.text, re.IGNORECASE):
        cursor.text = (
            f"SELECT * FROM {cursor.text} AS given({', '.join(f'c{i}' for i in range(len(table.columns)))})"
        )
    found = select(project, cursor.text, zone)
    if len(found.columns) != len(columns):
        raise RefusedError(
            400,
            "ODPS-0130071",
            f"[1,1] Semantic analysis exception - {len(columns)} columns are expected",
        )
    if named:
        rows = found.parts[()].rename_columns([column.name for column in columns])
        keys = rows.select([column.name for column in table.partition_columns]).to_pylist()
        specs = [tuple(map(str, key.values())) for key in keys]
        for spec in sorted(set(specs)):
            part = rows.filter(pa.array([each == spec for each in specs])).select(table.schema.names)
            table.put(spec, from_duckdb(part, table.columns), overwrite=overwrite)
        return
    table.put(
        spec,
        from_duckdb(found.parts[()].rename_columns(table.schema.names), table.columns),
        overwrite=overwrite,
    )


def _lines(lines: Iterable[str]) -> Table:
    found = Table("", [Column("", _STRING)])
    found.parts[()] = pa.table([pa.array(list(lines), pa.string())], [""])
    found.comment = "text"  # its result is text, not CSV
    return found


# Errors ------------------------------------------------------------------------------------------------------


def _translated(error: duckdb.Error, text: str) -> RefusedError:
    message = str(error)
    if found := _MISSING_COLUMN.search(message):
        name = found[1] or found[2]
        said = f"column {name} cannot be resolved"
    elif found := _MISSING_FUNCTION.search(message):
        name = found[1]
        said = f"function or view '{name}' cannot be resolved"
    else:
        return RefusedError(
            400, "ODPS-0130071", f"[1,1] Semantic analysis exception - {message.splitlines()[0]}"
        )
    return RefusedError(400, "ODPS-0130071", f"{_place(text, name)} Semantic analysis exception - {said}")


def _syntax(error: sqlglot.errors.SqlglotError, text: str) -> RefusedError:
    details = getattr(error, "errors", None) or [{}]
    starts = re.findall(
        r"(?:^|\(\n)\s*(\w+)", text
    )  # of the statement, and of a query in parentheses of its own
    unknown = [word for word in starts if word.upper() not in _FIRST_WORDS]
    token = unknown[0] if unknown else details[0].get("highlight") or text.split(maxsplit=1)[0]
    return RefusedError(
        400, "ODPS-0130161", f"{_place(text, token)} Parse exception - invalid token '{token}'"
    )


def _place(text: str, word: str, *, table: bool = False) -> str:
    """[line,column] of a word, as MaxCompute writes it. table: of one, whose name a column may have too."""
    masked = re.sub(r"'(?:[^'\\]|\\.)*'", lambda found: " " * len(found[0]), text)
    name = rf"(?<!\w)({re.escape(word)})(?!\w)"
    behind = rf"\b(?:FROM|JOIN|INTO|TABLE)\s+{name}"
    found = (table and re.search(behind, masked, re.IGNORECASE)) or re.search(name, masked, re.IGNORECASE)
    at = found.start(1) if found else 0
    line = text.count("\n", 0, at) + 1
    return f"[{line},{at - (text.rfind(chr(10), 0, at) + 1) + 1}]"


def _check_names(tree: exp.Expression) -> None:
    """A query in parentheses has each column once, whatever case its names have."""
    for inner in tree.find_all(exp.Subquery):
        selects = inner.this.named_selects if isinstance(inner.this, exp.Query) else []
        names = [name.lower() for name in selects if name != "*"]
        for name in names:
            if names.count(name) > 1:
                raise RefusedError(
                    400,
                    "ODPS-0130071",
                    f"[1,1] Semantic analysis exception - column name {name} is ambiguous",
                )


def _uncommented(text: str) -> str:
    """Without the comments around a statement."""
    return re.sub(r"^(\s*--[^\n]*\n)+", "", text)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
