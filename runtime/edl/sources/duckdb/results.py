"""Result tables in DuckDB, see `edl.sources.staging`.

All tables of a target are in its catalog (the attached database), because DuckDB writes to one database in a
transaction. The comment of a result table holds the mark; the comment of a staging table holds its job.

A target is a name of one to three parts: table, schema.table (or database.table), database.schema.table. A schema
that does not exist is created when the result is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from edl.data.arrow_types import Watched, columns_and_batches
from edl.data.names import free_name, join_quoted, quote_part, split_name
from edl.errors import SourceError
from edl.sources.staging import MARK, STAGE, Abandoned, ExistingTable, Staging, TablePlace, columns_differ
from edl.sources.staging_tables import few_rows

if TYPE_CHECKING:
    from edl.sources.duckdb.source import DuckDBSource

_TASK = "sqlflow_edl_task"  # column of the staged rows
_BATCHES = "sqlflow_edl_batches"  # name under which DuckDB sees incoming batches


class DuckDBResults(Staging):
    """Results of one DuckDB connection."""

    _source: DuckDBSource

    def write(self, target: str, job: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Make the target of rows that are all there, in one transaction: a staging table would write them twice, and
        sort them. Return their number.
        """
        if self._source.in_transaction:
            raise RuntimeError("results cannot be written inside a transaction")
        place = self._place(target)
        books = self._books(place, job)
        done = books.read_committed()
        if done is not None:
            self.abort(target, job)
            return done
        schema, batches = columns_and_batches(batches)
        watched = Watched(batches)
        reader = pa.RecordBatchReader.from_batches(schema, watched)
        with self._source.transaction():
            books.make_tables()
        with self._source.transaction():
            self._check(place, target, job)
            with self._source.visible(_BATCHES, reader), watched.errors(SourceError):
                self._make(place, job, f"FROM {_BATCHES}")
            rows = self._count(place)
            books.record_commit(rows)
            self._drop_staged(place, job)
        return rows

    def _place(self, target: str) -> TablePlace:
        """Resolve the target to the database and schema that DuckDB would use."""
        parts = split_name(target)
        catalog, schema = few_rows(self._source, "SELECT current_catalog(), current_schema()")[0]
        match parts:
            case (table,):
                return _place(catalog, schema, table)
            case (first, table):
                if not self._is_schema(catalog, first) and self._is_database(first):
                    return _place(first, "main", table)
                return _place(catalog, first, table)
            case (database, schema, table):
                if not self._is_database(database):
                    raise SourceError(
                        f"no database {database} is attached",
                        hint=f"write {schema}.{table}, or first ATTACH 'path/to/file.duckdb' AS {database}",
                    )
                return _place(database, schema, table)
        raise SourceError(
            f"the name {target} has {len(parts)} parts", hint="write it as database.schema.table"
        )

    def _existing(self, place: TablePlace, target: str) -> Iterator[ExistingTable]:
        where = "lower(database_name) = lower(?) AND lower(schema_name) = lower(?)"
        views = f"SELECT 1 FROM duckdb_views() WHERE {where} AND lower(view_name) = lower(?)"
        tables = f"SELECT comment FROM duckdb_tables() WHERE {where} AND lower(table_name) = lower(?)"
        places = [place.parts]
        if len(split_name(target)) == 1:  # a temporary table would hide it from queries
            places.append(("temp", "main", place.parts[-1]))
        for parts in places:
            yield from (ExistingTable(True) for _ in few_rows(self._source, views, parts))
            comments = few_rows(self._source, tables, parts)
            yield from (
                ExistingTable(False, mark or "", is_temporary=parts[0] == "temp") for (mark,) in comments
            )

    def _make_stage(self, place: TablePlace, job: str, schema: pa.Schema) -> None:
        """Make the staging table. Its first column is the task, under a name that no other column has."""
        stage, task = place.stage_table(job), quote_part(_task_column(schema))
        with self._source.visible(_BATCHES, schema.empty_table()):
            self._source.execute(
                f"CREATE TABLE IF NOT EXISTS {stage} AS SELECT 0::BIGINT AS {task}, * FROM {_BATCHES} LIMIT 0"
            )
        self._source.execute(f"COMMENT ON TABLE {stage} IS {_text(job)}")

    def _fill_stage(self, place: TablePlace, job: str, task: int, schema: pa.Schema, batches: Watched) -> int:
        stage, column = place.stage_table(job), quote_part(_task_column(schema))
        columns = self._columns(place, job)
        if columns != schema.names:
            raise columns_differ(task, schema.names, columns)
        self._source.execute(f"DELETE FROM {stage} WHERE {column} = ?", (task,))
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        with self._source.visible(_BATCHES, reader), batches.errors(SourceError):
            self._source.execute(f"INSERT INTO {stage} SELECT {int(task)}::BIGINT, * FROM {_BATCHES}")
        return int(few_rows(self._source, f"SELECT count(*) FROM {stage} WHERE {column} = ?", (task,))[0][0])

    def _swap(self, place: TablePlace, job: str, tasks: int) -> int:
        columns = ", ".join(map(quote_part, self._columns(place, job)))
        rows, order = self._staged_rows(place, job, tasks)
        self._make(place, job, f"SELECT {columns} {rows} ORDER BY {order}")
        return self._count(place)

    def _make(self, place: TablePlace, job: str, query: str) -> None:
        """Make the marked target of a query's rows, in their order."""
        self._source.execute(f"CREATE SCHEMA IF NOT EXISTS {join_quoted(place.parts[:2])}")
        self._source.execute(f"CREATE OR REPLACE TABLE {place.name} AS {query}")
        self._source.execute(f"COMMENT ON TABLE {place.name} IS {_text(f'{MARK}, job {job}')}")

    def _count(self, place: TablePlace) -> int:
        return int(few_rows(self._source, f"SELECT count(*) FROM {place.name}")[0][0])

    def _staged_rows(self, place: TablePlace, job: str, tasks: int) -> tuple[str, str]:
        task = quote_part(free_name(_TASK, self._columns(place, job)))
        return f"FROM {place.stage_table(job)} WHERE {task} < {int(tasks)}", f"{task}, rowid"

    def _columns(self, place: TablePlace, job: str) -> list[str]:
        """Return the columns of the staging table behind the task."""
        return list(self._source.schema(f"FROM {place.stage_table(job)}").names[1:])

    def _required_columns(self, place: TablePlace) -> list[str]:
        query = (
            "SELECT column_name FROM duckdb_columns() WHERE database_name = ? AND lower(schema_name) = lower(?)"
            " AND lower(table_name) = lower(?) AND NOT is_nullable AND column_default IS NULL ORDER BY column_index"
        )
        return [name for (name,) in few_rows(self._source, query, place.parts)]

    def _stages(self) -> list[Abandoned]:
        query = (
            "SELECT database_name, table_name, t.comment FROM duckdb_tables() t"
            " JOIN duckdb_databases() USING (database_name)"
            " WHERE schema_name = 'main' AND NOT readonly AND starts_with(table_name, ?)"
        )
        rows = few_rows(self._source, query, (STAGE,))
        return [Abandoned(_home(catalog), table, job) for catalog, table, job in rows]

    def _exists(self, home: str, table: str) -> bool:
        query = "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'main' AND table_name = ?"
        return bool(few_rows(self._source, query, (split_name(home[:-1])[0], table)))

    def _is_schema(self, catalog: str, name: str) -> bool:
        query = "SELECT 1 FROM duckdb_schemas() WHERE database_name = ? AND lower(schema_name) = lower(?)"
        return bool(few_rows(self._source, query, (catalog, name)))

    def _is_database(self, name: str) -> bool:
        query = "SELECT 1 FROM duckdb_databases() WHERE lower(database_name) = lower(?)"
        return bool(few_rows(self._source, query, (name,)))


def _place(catalog: str, schema: str, table: str) -> TablePlace:
    return TablePlace((catalog, schema, table), _home(catalog))


def _home(catalog: str) -> str:
    return join_quoted((catalog, "main")) + "."


def _task_column(schema: pa.Schema) -> str:
    return free_name(_TASK, schema.names)


def _text(value: str) -> str:
    """Return a literal: statements that define tables take no parameters."""
    return "'" + value.replace("'", "''") + "'"
