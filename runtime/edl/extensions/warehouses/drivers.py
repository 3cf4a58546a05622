"""Statements by drivers of ADBC, with rows as Arrow, and of the DB-API, with rows as Python values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.data.arrow_types import rechunk_rows
from edl.data.cells import cell
from edl.data.displayed_rows import DisplayedRows, text_where_unfit
from edl.errors import SourceError
from edl.extensions.warehouses.source import Parts, WarehouseSource
from edl.sources.cursors import FETCH_ROWS

INSERTED = 1000  # rows of one INSERT
LONGEST = 500_000  # letters of one, unless a row is longer: Trino takes 1,000,000 by default


class ADBCSource(WarehouseSource):
    """Warehouse with a driver of ADBC. The connection of its DB-API commits every statement by itself."""

    def __init__(self, url: str, connection: Any) -> None:
        super().__init__(url)
        self.connection = connection
        self._cursor: Any = None

    def rows(self, sql: str) -> pa.RecordBatchReader | None:
        self._end_cursor()
        self._cursor = self.connection.cursor()
        self._cursor.execute(sql)
        if not self._cursor.description:
            return None
        return self._cursor.fetch_record_batch()

    def append(self, parts: Parts, batches: pa.RecordBatchReader) -> None:
        self._end_cursor()
        places = dict(zip(("db_schema_name", "catalog_name"), reversed(parts[:-1]), strict=False))
        with self.connection.cursor() as cursor:
            cursor.adbc_ingest(parts[-1], batches, mode="append", **places)

    def interrupt(self) -> None:
        if (cursor := self._cursor) is not None:
            with suppress(*self.driver_errors):
                cursor.adbc_cancel()

    def close(self) -> None:
        self._end_cursor()
        self.connection.close()

    def _end_cursor(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


class DBAPISource(WarehouseSource):
    """Warehouse with a driver of the DB-API that commits every statement by itself."""

    def __init__(self, url: str, connection: Any) -> None:
        super().__init__(url)
        self.connection = connection
        self._cursor: Any = None
        self._is_displayed = False

    @abstractmethod
    def arrow_type(self, column: Sequence[Any]) -> pa.DataType:
        """Return the type of a column's values. `column` is its row in the cursor's description."""

    def rows(self, sql: str) -> pa.RecordBatchReader | None:
        self._end_cursor()
        self._cursor = cursor = self.connection.cursor()
        cursor.execute(sql)
        if not cursor.description:
            return None
        return self._reader(cursor.description, lambda: cursor.fetchmany(FETCH_ROWS))

    def displayed_rows(self, sql: str) -> pa.RecordBatchReader | None:
        self._is_displayed = True
        try:
            return self.rows(sql)
        finally:
            self._is_displayed = False

    def append(self, parts: Parts, batches: pa.RecordBatchReader) -> None:
        """Insert the rows as literals, up to a thousand in a statement: drivers of the DB-API have nothing faster."""
        self._end_cursor()
        insert = f"INSERT INTO {self.texts.name(*parts)} VALUES\n"
        for batch in rechunk_rows(batches, batches.schema, INSERTED):
            values = [self.texts.literals(column) for column in batch.columns]
            for rows in texts_of_statements(pc.binary_join_element_wise(*values, ", ")):
                with closing(self.connection.cursor()) as cursor:
                    cursor.execute(insert + "(" + "),\n(".join(rows) + ")")

    def interrupt(self) -> None:
        if (cursor := self._cursor) is not None:
            with suppress(*self.driver_errors):
                cursor.cancel()

    def close(self) -> None:
        self._end_cursor()
        self.connection.close()

    def _reader(self, description: Sequence[Any], fetch: Callable[[], Sequence[Any]]) -> pa.RecordBatchReader:
        """Return the rows; `fetch` returns some thousands at a time."""
        is_displayed = self._is_displayed
        convert = _display_values if is_displayed else _array
        schema = pa.schema([(column[0], self.arrow_type(column)) for column in description])

        def batches() -> Iterator[pa.RecordBatch]:
            while rows := fetch():
                columns = zip(zip(*rows, strict=True), schema, strict=True)
                arrays = [convert(values, field) for values, field in columns]
                yield pa.RecordBatch.from_arrays(arrays, names=schema.names)

        make = DisplayedRows if is_displayed else pa.RecordBatchReader.from_batches
        return make(schema, batches())

    def _end_cursor(self) -> None:
        if self._cursor is not None:
            with suppress(*self.driver_errors):
                self._cursor.close()
            self._cursor = None


def texts_of_statements(rows: pa.Array) -> Iterator[list[str]]:
    """Yield the rows, as texts, in parts not much longer than `LONGEST`, unless a row is."""
    parts = np.cumsum(pc.utf8_length(rows)) // LONGEST
    for first, end in pairwise([0, *np.flatnonzero(np.diff(parts)) + 1, len(rows)]):
        yield rows.slice(first, end - first).to_pylist()


def _display_values(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Convert the values of a column for display: texts if one is not of its type."""
    return text_where_unfit(
        values, lambda some: _array(some, field), lambda value: None if value is None else cell(value)
    )


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Convert the values of a column. Raises SourceError for a value that is not of its type."""
    if pa.types.is_string(field.type):
        values = [value if value is None else str(value) for value in values]
    elif pa.types.is_floating(field.type) and isinstance(
        _first_value(values), Decimal
    ):  # NUMERIC of any precision
        values = [value if value is None else float(value) for value in values]
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SourceError(
            f"column {field.name} has a value that is no {field.type}: {str(error).splitlines()[0]}",
            hint=f"cast it in the SELECT, for example CAST({field.name} AS VARCHAR)",
        ) from None


def _first_value(values: Sequence[Any]) -> Any:
    return next((value for value in values if value is not None), None)
