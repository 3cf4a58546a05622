"""MaxCompute as a data source: one project of a service.

A query's rows are stored in a temporary table, which MaxCompute drops after some days, and read by the tunnel: the
result of a SELECT alone is limited to 10,000 rows. Pinned rows stay there as long as the job lasts, and every process
of the job reads its ranges itself.

MaxCompute has no transactions. Statements of one source run one after another, in one thread.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from odps import errors as odps_errors

from edl.data.arrow_types import BATCH_ROWS, normal_schema, rechunk_rows
from edl.data.server_url import ServerURL
from edl.data.source import Pinned
from edl.errors import SourceError
from edl.sources.common import BaseSource
from edl.sources.maxcompute import pinning, types
from edl.sources.maxcompute.client import ERRORS, Client, again, utc
from edl.sources.maxcompute.download import TableRows, record_batches
from edl.sources.maxcompute.errors import translate_error
from edl.sources.maxcompute.results import MaxComputeResults
from edl.sources.maxcompute.sql import LEXICON, bind_values, is_query, partition, quote_name, setting
from edl.sources.maxcompute.upload import upload
from edl.sources.words import ended_result_error
from edl.spec import Split

RESULT_ROWS = 10_000  # limit of the result of an instance
OURS = "sqlflow_edl_"

_ROWS = "sqlflow_edl_rows_"  # followed by a random number: rows of a query that is being read


class MaxComputeSource(BaseSource):
    """`edl.data.source.Source` for MaxCompute."""

    dialect = "maxcompute"
    home = ""
    temporary_tables = True
    temporary_tables_are_private = False

    def __init__(self, client: Client, url: str) -> None:
        self.url = url
        self.client = client
        self._results = MaxComputeResults(self)
        self._reading = ""  # table of the result that is being read
        self._seen: dict[
            str, list[types.MaxComputeColumn]
        ] = {}  # columns of queries, until another statement runs

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> MaxComputeSource:
        """Open the project. `create` has no effect: administrators create projects."""
        client = Client(url)
        source = cls(client, str(url))
        with source.errors():
            client.check()
        return source

    def interrupt(self) -> None:
        self.client.interrupt()

    def close(self) -> None:
        with suppress(SourceError):
            self._end_result()

    # Reading ---------------------------------------------------------------------------------------------

    def schema(self, query: str) -> pa.Schema:
        query = LEXICON.one_query(query)
        self._seen.pop(query, None)
        return normal_schema(types.schema(self.columns(query)))

    def column_types(self, table: str) -> list[tuple[str, str]]:
        return [
            (column.name, str(column.odps))
            for column in self.columns(LEXICON.one_query(f"SELECT * FROM {table}"))
        ]

    def stream(self, query: str, *, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        query = LEXICON.one_query(query)
        self.columns(query)
        reader = self._materialize(query, query)
        batches = rechunk_rows(self._batches(reader), reader.schema, batch_rows)
        return pa.RecordBatchReader.from_batches(reader.schema, batches)

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        return pinning.pin(self, LEXICON.one_query(query), folder, seed=seed, shuffle=shuffle, split=split)

    def unpin(self, pinned: Pinned, folder: Path) -> None:
        if pinned.table is not None:
            self.run(f"DROP TABLE IF EXISTS {quote_name(pinned.table.name)}")

    def how_rows_are_kept(self) -> str:
        return "all rows are copied once into a table of the project, where one process sorts training rows"

    def pinning_rates(self) -> None:
        return None  # they are the project's

    def unpin_abandoned(self) -> int:
        return pinning.unpin_abandoned(self)

    # Statements ------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> pa.RecordBatchReader | None:
        LEXICON.one_statement(sql)
        if flag := setting(sql):
            self.client.set(*flag)
            return None
        instance = self.run(bind_values(sql, parameters).rstrip().rstrip(";"), sql)
        if not is_query(sql):
            return _read_output(instance.get_task_results())
        with self.errors(sql):
            columns, rows, batches = self._small_result(instance)
        if rows < RESULT_ROWS:
            return pa.RecordBatchReader.from_batches(types.schema(columns), batches)
        reader = self._materialize(bind_values(sql, parameters).rstrip().rstrip(";"), sql, displayed=True)
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))

    def few_rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a small internal query."""
        _, _, batches = self._small_result(self.run(sql))
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    def run(self, sql: str, query: str = "") -> Any:
        """Run a statement. Return its instance. `query` is the user's text in it, to which error positions refer."""
        self._seen.clear()
        return self._run(sql, query)

    def stage_temporary(self, name: str, batches: pa.RecordBatchReader) -> None:
        """See `Source.stage_temporary`. The whole project sees the table. It ends after a day if it is not dropped."""
        columns = ", ".join(f"`{field.name}` {types.declare_type(field)}" for field in batches.schema)
        self.run(f"CREATE TABLE {quote_name(name)} ({columns}) LIFECYCLE 1")
        with self.errors():
            upload(self.client, name, None, batches)

    def drop_temporary(self, name: str) -> None:
        self.run(f"DROP TABLE IF EXISTS {quote_name(name)}")

    def transaction(self) -> AbstractContextManager[None]:
        raise SourceError("MaxCompute has no transactions")

    def tables(self) -> list[str]:
        return [entry.name for entry in self.list_objects("") if not entry.name.startswith(OURS)]

    def databases(self) -> list[str]:
        return [self.client.odps.project]  # other projects can only be listed by their owners

    def list_objects(self, prefix: str) -> list[Any]:
        """List pyodps's tables and views with names that begin with `prefix`."""
        with self.errors():
            return [
                t for t in self.client.odps.list_tables(prefix=prefix or None) if t.name.startswith(prefix)
            ]

    # Partitions ------------------------------------------------------------------------------------------

    def columns_of(self, table: str) -> list[str]:
        """Return the names of a table's columns, partition columns last; empty if there is no such table."""
        entry = self.table(table)
        return [column.name for column in entry.table_schema.columns] if entry is not None else []

    def partitions(self, table: str) -> list[dict[str, str]]:
        """Return the partitions of a table; empty if there is no such table."""
        entry = self.table(table)
        if entry is None:
            return []
        with self.errors():
            return [dict(part.partition_spec.items()) for part in entry.iterate_partitions()]

    def add_partition(self, table: str, values: dict[str, str]) -> None:
        """Add a partition. Raises ConflictError if it exists."""
        self.run(f"ALTER TABLE {quote_name(table)} ADD PARTITION ({partition(values)})")

    def drop_partition(self, table: str, values: dict[str, str]) -> None:
        self.run(f"ALTER TABLE {quote_name(table)} DROP IF EXISTS PARTITION ({partition(values)})")

    def replace_partition(self, table: str, values: dict[str, str], batches: Iterator[pa.RecordBatch]) -> int:
        """Replace a partition by these rows, in this order, once all are uploaded. Return their number."""
        with self.errors():
            return upload(self.client, table, partition(values), batches)

    def read_partition(self, table: str, values: dict[str, str]) -> Iterator[pa.RecordBatch]:
        with self.errors():
            reader = TableRows(self.client, table, part=partition(values))
        yield from reader.read(0, reader.rows)

    def table(self, name: str) -> Any | None:
        """Return the current state of a table as pyodps's object, or None if there is none."""
        with self.errors():
            entry = self.client.odps.get_table(name)
            try:
                entry.reload()
            except (odps_errors.NoSuchTable, odps_errors.NoSuchObject):
                return None
        return entry

    # Inside ----------------------------------------------------------------------------------------------

    @contextmanager
    def errors(self, query: str = "", run: str = "") -> Iterator[None]:
        """Translate pyodps's errors."""
        try:
            yield
        except ERRORS as error:
            raise translate_error(error, query, run, self._names(self.tables), self._columns_of) from None

    def columns(self, query: str) -> list[types.MaxComputeColumn]:
        """Return the query's columns. Raises SourceError if a job cannot use the query or one of its columns.

        Columns that `schema` has just determined are reused, because every statement takes seconds here.
        """
        if query not in self._seen:
            instance = self._run(f"SELECT * FROM (\n{query}\n) q LIMIT 0", query)
            with self.errors():
                session = self.client.result(instance)
            self._seen[query] = types.columns(session.schema.simple_columns)
        return self._seen[query]

    def _run(self, sql: str, query: str) -> Any:
        self._end_result()
        with self.errors(query, sql):
            return self.client.run(sql)

    def _small_result(self, instance: Any) -> tuple[list[types.MaxComputeColumn], int, list[pa.RecordBatch]]:
        """Return columns, number of rows and rows of a SELECT; the rows only if they are complete."""
        session = self.client.result(instance)
        columns = types.displayed_columns(session.schema.simple_columns)
        if session.count >= RESULT_ROWS or not session.count:
            return columns, session.count, []
        with utc():
            batches = again(
                lambda: list(record_batches(session, 0, session.count, columns, self.client.zone))
            )
        return columns, session.count, batches

    def _materialize(self, select: str, query: str, *, displayed: bool = False) -> TableRows:
        """Store the rows of a query in a table that lasts until the next statement."""
        table = _ROWS + secrets.token_hex(8)
        self.run(f"CREATE TABLE {quote_name(table)} LIFECYCLE 1 AS\n{select}", query)
        self._reading = table
        with self.errors():
            return TableRows(self.client, table, displayed=displayed)

    def _batches(self, reader: TableRows) -> Iterator[pa.RecordBatch]:
        table = self._reading
        try:
            for batch in reader.read(0, reader.rows):
                if self._reading != table:
                    break
                yield batch
        except SourceError:
            if self._reading == table:
                raise
        if self._reading != table:  # its table has been dropped
            raise ended_result_error()
        self._end_result()

    def _end_result(self) -> None:
        if self._reading:
            table, self._reading = self._reading, ""
            with suppress(SourceError):
                self._run(f"DROP TABLE IF EXISTS {quote_name(table)}", "")

    def _names(self, tables: Callable[[], list[str]]) -> Callable[[], list[str]]:
        def asked() -> list[str]:
            try:
                return tables()
            except SourceError:  # the same error may occur here
                return []

        return asked

    def _columns_of(self, tables: list[str]) -> list[str]:
        names: list[str] = []
        with suppress(*ERRORS):
            for table in tables:
                schema = self.client.odps.get_table(table).table_schema
                names += [column.name for column in schema.columns]
        return list(dict.fromkeys(names))


def _read_output(results: dict[str, Any]) -> pa.RecordBatchReader | None:
    """Return the output of a statement such as SHOW or DESC as lines, or None if it is empty."""
    lines = [line for text in results.values() for line in str(text or "").splitlines()]
    if not lines:
        return None
    return pa.table({"result": lines}).to_reader()
