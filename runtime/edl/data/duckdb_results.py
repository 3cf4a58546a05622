"""Result tables of DuckDB: staged out of sight, swapped in whole, once.

Three kinds of tables in the catalog (the attached database) of the target, because DuckDB writes to one database in
a transaction: `sqlflow_edl_staged` says which task's rows are staged by which attempt, one
`sqlflow_edl_stage_<digest>` per target and job holds the rows (and has the job as its comment), and
`sqlflow_edl_results` says what was committed. A result table says in its comment that a job of ours made it; the
comment goes with the table when a user drops it and makes another one.

A target is a name of one to three parts: table, schema.table (or database.table), database.schema.table. A schema
that does not exist is created when the result is committed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from edl.data.columns import columns_and_batches
from edl.data.names import dotted, free_name, quoted, split_name
from edl.errors import SourceError

if TYPE_CHECKING:
    from edl.data.duckdb import DuckDBSource

MARK = "made by sqlflow-edl"

_STAGE = "sqlflow_edl_stage_"  # and a digest
_STAGED = "sqlflow_edl_staged"
_RESULTS = "sqlflow_edl_results"
_BATCHES = "sqlflow_edl_batches"  # the name under which DuckDB sees the batches that come in


@dataclass(frozen=True, slots=True)
class _Target:
    """A result table and the tables that serve it, as they stand in SQL."""

    catalog: str
    schema: str
    table: str

    @property
    def name(self) -> str:
        return dotted((self.catalog, self.schema, self.table))

    @property
    def staged(self) -> str:
        return dotted((self.catalog, "main", _STAGED))

    @property
    def results(self) -> str:
        return dotted((self.catalog, "main", _RESULTS))

    def rows(self, job: str) -> str:
        digest = hashlib.blake2b(f"{self.name}\0{job}".encode(), digest_size=16).hexdigest()
        return dotted((self.catalog, "main", _STAGE + digest))


def check_target(source: DuckDBSource, target: str) -> None:
    """SourceError when the name is a view, or a table that no job of ours made."""
    _check(source, _resolved(source, target), target)


def stage(
    source: DuckDBSource, target: str, job: str, task: int, attempt: int, batches: Iterable[pa.RecordBatch]
) -> int:
    """`Source.stage`. `batches` is a reader, or has at least one batch (it may be empty), which tells the columns.

    An attempt that is older than the one staged changes nothing; the rows that count are those staged. RuntimeError:
    inside a transaction of the caller.
    """
    if source.in_transaction:
        raise RuntimeError("results cannot be staged inside a transaction")
    place = _resolved(source, target)
    _check(source, place, target)
    incoming = _Incoming(batches)
    # The tables are made in a transaction of their own: DuckDB 2.0 loses sight of rows when more than a row group of
    # them goes into a table that CREATE TABLE … AS made empty in the same transaction.
    with source.transaction():
        _make_tables(source, place, job, incoming.schema)
    with source.transaction():
        staged = f"FROM {place.staged} WHERE target = ? AND job = ? AND task = ?"
        key = (place.name, job, task)
        for newer, rows in _rows(source, f"SELECT attempt, row_count {staged}", key):
            if newer > attempt:
                return int(rows)
        rows = _insert(source, place.rows(job), task, incoming)
        source.execute(f"DELETE {staged}", key)
        source.execute(f"INSERT INTO {place.staged} VALUES (?, ?, ?, ?, ?)", (*key, attempt, rows))
    return rows


def commit(source: DuckDBSource, target: str, job: str, tasks: int) -> int:
    """`Source.commit`."""
    place = _resolved(source, target)
    done = _committed(source, place, job)
    if done is not None:
        abort(source, target, job)
        return done
    _check(source, place, target)
    expected = _complete(source, place, job, tasks)
    with source.transaction():
        rows = _swap(source, place, job, tasks)
        if rows != expected:
            raise SourceError(f"{expected:,} rows of job {job} were staged, and {rows:,} of them came back")
        source.execute(
            f"INSERT INTO {place.results} VALUES (?, ?, ?, now()::TIMESTAMP)", (place.name, job, rows)
        )
        _drop_staged(source, place, job)
    return rows


def abort(source: DuckDBSource, target: str, job: str) -> None:
    """`Source.abort`."""
    place = _resolved(source, target)
    with source.transaction():
        _drop_staged(source, place, job)


def sweep(source: DuckDBSource, live_jobs: Collection[str]) -> int:
    """`Source.sweep`, in every database that is attached and can be written."""
    query = (
        "SELECT database_name, table_name, t.comment FROM duckdb_tables() t"
        " JOIN duckdb_databases() USING (database_name)"
        " WHERE schema_name = 'main' AND NOT readonly AND starts_with(table_name, ?)"
    )
    dead = [found for found in _rows(source, query, (_STAGE,)) if found[2] not in live_jobs]
    for catalog, table, job in dead:
        with source.transaction():
            source.execute(f"DROP TABLE IF EXISTS {dotted((catalog, 'main', table))}")
            if _exists(source, catalog, _STAGED):
                source.execute(f"DELETE FROM {dotted((catalog, 'main', _STAGED))} WHERE job = ?", (job,))
    return len(dead)


# Steps -------------------------------------------------------------------------------------------------------


def _resolved(source: DuckDBSource, target: str) -> _Target:
    """The target with the database and schema that DuckDB would look in."""
    parts = split_name(target)
    catalog, schema = _rows(source, "SELECT current_catalog(), current_schema()")[0]
    match parts:
        case (table,):
            return _Target(catalog, schema, table)
        case (first, table):
            if not _is_schema(source, catalog, first) and _is_database(source, first):
                return _Target(first, "main", table)
            return _Target(catalog, first, table)
        case (catalog, schema, table):
            return _Target(catalog, schema, table)
    raise SourceError(f"the name {target} has {len(parts)} parts", hint="write it as database.schema.table")


def _check(source: DuckDBSource, place: _Target, target: str) -> None:
    where = "lower(database_name) = lower(?) AND lower(schema_name) = lower(?)"
    values = (place.catalog, place.schema, place.table)
    if _rows(source, f"SELECT 1 FROM duckdb_views() WHERE {where} AND lower(view_name) = lower(?)", values):
        raise SourceError(
            f"{target} is a view, it cannot hold results", hint="write the results into another table"
        )
    tables = f"SELECT comment FROM duckdb_tables() WHERE {where} AND lower(table_name) = lower(?)"
    if any(not (comment or "").startswith(MARK) for (comment,) in _rows(source, tables, values)):
        raise SourceError(
            f"the table {target} exists and was not made by sqlflow-edl",
            hint="write the results into another table, or drop this one first",
        )


def _make_tables(source: DuckDBSource, place: _Target, job: str, schema: pa.Schema) -> None:
    """The bookkeeping, and the staging table; its first column is the task, of a name that the others leave."""
    source.execute(
        f"CREATE TABLE IF NOT EXISTS {place.staged}"
        " (target VARCHAR, job VARCHAR, task BIGINT, attempt BIGINT, row_count BIGINT)"
    )
    source.execute(
        f"CREATE TABLE IF NOT EXISTS {place.results}"
        " (target VARCHAR, job VARCHAR, row_count BIGINT, committed TIMESTAMP)"
    )
    column = quoted(_task_column(schema))
    with source.visible(_BATCHES, schema.empty_table()):
        source.execute(
            f"CREATE TABLE IF NOT EXISTS {place.rows(job)} AS SELECT 0::BIGINT AS {column}, * FROM {_BATCHES} LIMIT 0"
        )
    source.execute(f"COMMENT ON TABLE {place.rows(job)} IS {_text(job)}")


class _Incoming:
    """Batches on their way into DuckDB; keeps the error that their producer raised, which DuckDB would wrap."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.error: Exception | None = None
        self.schema, normal = columns_and_batches(batches)
        self.reader = pa.RecordBatchReader.from_batches(self.schema, self._watched(normal))

    def _watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            self.error = error
            raise


def _insert(source: DuckDBSource, stage_table: str, task: int, incoming: _Incoming) -> int:
    """Replace the task's rows in the staging table; how many they are."""
    names = [_task_column(incoming.schema), *incoming.schema.names]
    column = quoted(names[0])
    if (there := source.schema(f"FROM {stage_table}").names) != names:
        raise SourceError(f"task {task} has the columns {names[1:]}, the tasks before it have {there[1:]}")
    source.execute(f"DELETE FROM {stage_table} WHERE {column} = ?", (task,))
    with source.visible(_BATCHES, incoming.reader):
        try:
            source.execute(f"INSERT INTO {stage_table} SELECT {int(task)}::BIGINT, * FROM {_BATCHES}")
        except SourceError:
            if incoming.error is not None:
                raise incoming.error from None
            raise
    return int(_rows(source, f"SELECT count(*) FROM {stage_table} WHERE {column} = ?", (task,))[0][0])


def _complete(source: DuckDBSource, place: _Target, job: str, tasks: int) -> int:
    """The number of staged rows. SourceError: a task has none staged, not even an empty result."""
    staged: dict[int, int] = {}
    if _exists(source, place.catalog, _STAGED):
        query = f"SELECT task, row_count FROM {place.staged} WHERE target = ? AND job = ? AND task < ?"
        staged = dict(_rows(source, query, (place.name, job, tasks)))
    missing = [task for task in range(tasks) if task not in staged]
    if missing or not tasks:
        raise SourceError(
            f"{len(missing)} of the {tasks} tasks of job {job} have no staged rows"
            + (f", the first is task {missing[0]}" if missing else "")
        )
    return sum(staged.values())


def _swap(source: DuckDBSource, place: _Target, job: str, tasks: int) -> int:
    """Make the target of the staged rows; how many they are."""
    stage_table = place.rows(job)
    task, *columns = (quoted(name) for name in source.schema(f"FROM {stage_table}").names)
    source.execute(f"CREATE SCHEMA IF NOT EXISTS {dotted((place.catalog, place.schema))}")
    source.execute(
        f"CREATE OR REPLACE TABLE {place.name} AS SELECT {', '.join(columns)} FROM {stage_table}"
        f" WHERE {task} < {int(tasks)} ORDER BY {task}, rowid"
    )
    source.execute(f"COMMENT ON TABLE {place.name} IS {_text(f'{MARK}, job {job}')}")
    return int(_rows(source, f"SELECT count(*) FROM {place.name}")[0][0])


def _drop_staged(source: DuckDBSource, place: _Target, job: str) -> None:
    source.execute(f"DROP TABLE IF EXISTS {place.rows(job)}")
    if _exists(source, place.catalog, _STAGED):
        source.execute(f"DELETE FROM {place.staged} WHERE target = ? AND job = ?", (place.name, job))


def _committed(source: DuckDBSource, place: _Target, job: str) -> int | None:
    """How many rows the job committed to the target; None when it has not."""
    if not _exists(source, place.catalog, _RESULTS):
        return None
    found = _rows(
        source, f"SELECT row_count FROM {place.results} WHERE target = ? AND job = ?", (place.name, job)
    )
    return int(found[0][0]) if found else None


def _exists(source: DuckDBSource, catalog: str, table: str) -> bool:
    """Whether a table of ours is there."""
    query = (
        "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'main' AND table_name = ?"
    )
    return bool(_rows(source, query, (catalog, table)))


def _rows(source: DuckDBSource, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """A few rows of bookkeeping."""
    reader = source.execute(query, parameters)
    table = reader.read_all() if reader is not None else pa.table({})
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _is_schema(source: DuckDBSource, catalog: str, name: str) -> bool:
    query = "SELECT 1 FROM duckdb_schemas() WHERE database_name = ? AND lower(schema_name) = lower(?)"
    return bool(_rows(source, query, (catalog, name)))


def _is_database(source: DuckDBSource, name: str) -> bool:
    return bool(
        _rows(source, "SELECT 1 FROM duckdb_databases() WHERE lower(database_name) = lower(?)", (name,))
    )


def _task_column(schema: pa.Schema) -> str:
    return free_name("sqlflow_edl_task", schema.names)


def _text(value: str) -> str:
    """A literal; statements that define tables take no parameters."""
    return "'" + value.replace("'", "''") + "'"
