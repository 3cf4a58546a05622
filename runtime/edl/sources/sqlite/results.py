"""Result tables in SQLite, see `edl.sources.staging`.

SQLite keeps the text of a CREATE TABLE statement, including comments inside its parentheses, across renames and
vacuum, and deletes it with the table. So the mark and the job are in such a comment.

The number of a staged row is its rowid, so that a table scan yields the rows in order. A commit renames the staging
table; no row is copied.

A target is a name of one or two parts: table, or database.table of an attached database.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.types as types

from edl.data.names import quote_part, split_name
from edl.errors import SourceError, did_you_mean
from edl.sources.numbered import NumberedStaging
from edl.sources.staging import MARK, STAGE, Abandoned, ExistingTable, TablePlace
from edl.sources.staging_tables import few_rows

if TYPE_CHECKING:
    from edl.sources.sqlite.source import SQLiteSource

_JOB = re.compile(re.escape(MARK) + r", job (\S*) \*/")
_ROW_NAMES = ("rowid", "_rowid_", "oid")

# Arrow type -> declared type, and the Arrow type with Python values that SQLite stores
_STORED = (
    (types.is_boolean, "BOOLEAN", pa.int8()),
    (types.is_integer, "INTEGER", pa.int64()),
    (types.is_floating, "REAL", pa.float64()),
    (types.is_decimal, "REAL", pa.float64()),
    (types.is_date, "DATE", pa.string()),
    (types.is_timestamp, "TIMESTAMP", pa.string()),
    (types.is_time, "TIME", pa.string()),
    (types.is_duration, "INTEGER", pa.int64()),
    (types.is_string, "TEXT", pa.string()),
    (types.is_binary, "BLOB", pa.binary()),
    (types.is_fixed_size_binary, "BLOB", pa.binary()),
    (types.is_null, "", pa.null()),
)


class SQLiteResults(NumberedStaging):
    """Results of one SQLite connection."""

    _source: SQLiteSource

    def _place(self, target: str) -> TablePlace:
        """Resolve the target to the database where SQLite would find it, or else main."""
        parts = split_name(target)
        databases = {name.casefold(): name for name in self._source.attached()}
        match parts:
            case (table,):
                databases_with_table = (
                    name for name in databases.values() if self._find_objects(name, table)
                )
                return _place(next(databases_with_table, "main"), table)
            case (database, table):
                if name := databases.get(database.casefold()):
                    return _place(name, table)
                near = did_you_mean(database, databases.values(), list_up_to=0)
                raise SourceError(
                    f"no database {database} is attached, and SQLite has no schemas",
                    hint=near
                    or f"write {database}_{table}, or first ATTACH 'path/to/file.sqlite' AS {database}",
                )
        raise SourceError(f"the name {target} has {len(parts)} parts", hint="write it as database.table")

    def _existing(self, place: TablePlace, target: str) -> Iterator[ExistingTable]:
        for kind, name, sql in self._find_objects(*place.parts):
            prefix = f"CREATE TABLE {quote_part(name)} ( /* "
            yield ExistingTable(
                kind == "view", sql.removeprefix(prefix) if (sql or "").startswith(prefix) else ""
            )

    def _make_stage(self, place: TablePlace, job: str, schema: pa.Schema) -> None:
        columns = ", ".join(map(declare_column, schema))
        mark = f"/* {MARK}, job {quote(job, safe='')} */"
        self._source.execute(f"CREATE TABLE IF NOT EXISTS {place.stage_table(job)} ( {mark} {columns})")

    def _swap(self, place: TablePlace, job: str, tasks: int) -> int:
        """Rename the staging table to the target.

        The target is checked again, because inside this transaction no other process can create a table.
        """
        self._check(place, ".".join(place.parts), job)
        execute, stage = self._source.execute, place.stage_table(job)
        self._drop_beyond(place, job, tasks)
        execute(f"DROP TABLE IF EXISTS {place.name}")
        ((legacy,),) = few_rows(self._source, "PRAGMA legacy_alter_table")
        # Otherwise a user's view that reads this table, or is broken, would make the rename fail.
        execute("PRAGMA legacy_alter_table = ON")
        try:
            execute(f"ALTER TABLE {stage} RENAME TO {quote_part(place.parts[-1])}")
        finally:
            execute(f"PRAGMA legacy_alter_table = {int(legacy)}")
        return int(few_rows(self._source, f"SELECT count(*) FROM {place.name}")[0][0])

    def _stages(self) -> list[Abandoned]:
        stages = []
        for database, file in self._source.attached().items():
            if file and not os.access(file, os.W_OK):
                continue
            home = quote_part(database) + "."
            query = (
                f"SELECT name, sql FROM {home}sqlite_master WHERE type = 'table' AND substr(name, 1, ?) = ?"
            )
            for name, sql in few_rows(self._source, query, (len(STAGE), STAGE)):
                if match := _JOB.search(sql):
                    stages.append(Abandoned(home, name, unquote(match[1])))
        return stages

    def _exists(self, home: str, table: str) -> bool:
        query = f"SELECT 1 FROM {home}sqlite_master WHERE type = 'table' AND name = ?"
        return bool(few_rows(self._source, query, (table,)))

    def _columns(self, place: TablePlace, job: str) -> list[str]:
        """Return the columns of the staging table."""
        query = "SELECT name FROM pragma_table_info(?, ?) ORDER BY cid"
        return [name for (name,) in few_rows(self._source, query, (place.stage_name(job), place.parts[0]))]

    def _required_columns(self, place: TablePlace) -> list[str]:
        """Return the columns NOT NULL without a default; a primary key without an index is the number of the row."""
        database, table = place.parts
        query = (
            'SELECT name FROM pragma_table_info(?, ?) WHERE "notnull" AND dflt_value IS NULL AND (pk = 0 OR EXISTS'
            " (SELECT 1 FROM pragma_index_list(?, ?) WHERE origin = 'pk')) ORDER BY cid"
        )
        return [name for (name,) in few_rows(self._source, query, (table, database) * 2)]

    def _number(self, names: Iterable[str]) -> str:
        return _row_name(names)

    def _append(self, stage: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        names = ", ".join([_row_name(schema.names), *map(quote_part, schema.names)])
        marks = ", ".join("?" * (len(schema) + 1))
        self._source.insert(f"INSERT INTO {stage} ({names}) VALUES ({marks})", values_of(batches))

    def _find_objects(self, database: str, name: str) -> list[tuple[Any, ...]]:
        """Return kind, name and text of the object with this name, ignoring case."""
        query = (
            f"SELECT type, name, sql FROM {quote_part(database)}.sqlite_master WHERE name = ? COLLATE NOCASE"
        )
        return few_rows(self._source, f"{query} AND type <> 'trigger'", (name,))


def _place(database: str, table: str) -> TablePlace:
    return TablePlace((database, table), quote_part(database) + ".")


def _row_name(names: Iterable[str]) -> str:
    """Return SQLite's name of the row number that no column uses."""
    taken = {name.casefold() for name in names}
    for name in _ROW_NAMES:
        if name not in taken:
            return name
    raise SourceError(
        f"SQLite cannot keep a table with columns named {', '.join(_ROW_NAMES)}",
        hint="rename one in the SELECT",
    )


def _stored_type(field: pa.Field) -> tuple[str, pa.DataType]:
    for fits, declared, arrow in _STORED:
        if fits(field.type):
            return declared, arrow
    raise SourceError(
        f"column {field.name} is of the type {field.type}, which SQLite cannot hold",
        hint="leave it out, or make it a text",
    )


def declare_column(field: pa.Field) -> str:
    """Return the definition of a column of this type. Raises SourceError if SQLite has no such type."""
    return f"{quote_part(field.name)} {_stored_type(field)[0]}".rstrip()


def values_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as Python values, batch by batch."""
    for batch in batches:
        columns = [_values(field, column) for field, column in zip(batch.schema, batch.columns, strict=True)]
        yield from zip(*columns, strict=True)


def _values(field: pa.Field, column: pa.Array) -> list[Any]:
    arrow = _stored_type(field)[1]
    if types.is_timestamp(field.type):
        column = column.cast(pa.timestamp("us", field.type.tz), safe=False)
    try:
        return (column if column.type == arrow else column.cast(arrow)).to_pylist()  # type: ignore[no-any-return]
    except pa.ArrowInvalid:
        raise SourceError(
            f"column {field.name} holds numbers beyond the 64 bits of SQLite's integers",
            hint="make it numbers of DOUBLE (float64), or texts",
        ) from None
