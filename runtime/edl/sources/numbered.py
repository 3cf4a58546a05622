"""Staging tables of numbered rows: the number is composed of the task and of the row in that task.

A scan by the number yields the rows of all tasks in order, and the staging table itself can become the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Protocol

import pyarrow as pa

from edl.data.arrow_types import Watched
from edl.data.names import free_name, quote_part
from edl.errors import SourceError
from edl.sources.staging import Staging, TablePlace, TransactionalSource, columns_differ
from edl.sources.staging_tables import few_rows

TASK_ROWS = 1 << 40  # more rows than a task has
_NUMBER = "sqlflow_edl_row"


class AppendingSource(TransactionalSource, Protocol):
    """Source that appends batches to one of its tables."""

    def append(self, table: str, names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> None: ...


class NumberedStaging(Staging):
    """Results of one source that numbers staged rows from 1."""

    @abstractmethod
    def _number(self, names: Iterable[str]) -> str:
        """Return the quoted name of the number of a row with these columns."""

    @abstractmethod
    def _append(self, stage: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Append batches to the staging table. Their first column is the number of the row."""

    def _fill_stage(self, place: TablePlace, job: str, task: int, schema: pa.Schema, batches: Watched) -> int:
        columns = self._columns(place, job)
        if columns != schema.names:
            raise columns_differ(task, schema.names, columns)
        stage, number = place.stage_table(job), self._number(schema.names)
        start, end = task * TASK_ROWS + 1, (task + 1) * TASK_ROWS + 1
        where = f"FROM {stage} WHERE {number} >= {start} AND {number} < {end}"
        self._source.execute(f"DELETE {where}")
        with batches.errors(SourceError):
            self._append(stage, schema, _number_rows(batches, start))
        return int(few_rows(self._source, f"SELECT count(*) {where}")[0][0])

    def _staged_rows(self, place: TablePlace, job: str, tasks: int) -> tuple[str, str]:
        number = self._number(self._columns(place, job))
        return f"FROM {place.stage_table(job)} WHERE {number} <= {tasks * TASK_ROWS}", number

    def _drop_beyond(self, place: TablePlace, job: str, tasks: int) -> None:
        """Delete the staged rows of tasks that are not committed."""
        number = self._number(self._columns(place, job))
        self._source.execute(f"DELETE FROM {place.stage_table(job)} WHERE {number} > {tasks * TASK_ROWS}")


class NumberColumnStaging(NumberedStaging):
    """Results of a server: the number of a row is a column, beside the columns of the result."""

    _source: AppendingSource

    def _number(self, names: Iterable[str]) -> str:
        return quote_part(free_name(_NUMBER, names), self.quote)

    def _append(self, stage: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self._source.append(stage, [free_name(_NUMBER, schema.names), *schema.names], batches)


def _number_rows(batches: Iterable[pa.RecordBatch], start: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches with the numbers of their rows as the first column."""
    numbers = count(start)
    for batch in batches:
        first = pa.array(islice(numbers, batch.num_rows), pa.int64())
        yield pa.RecordBatch.from_arrays([first, *batch.columns], names=["", *batch.schema.names])
