"""Staging tables of numbered rows: the number is composed of the task and of the row in that task.

A scan by the number yields the rows of all tasks in order, and the staging table itself can become the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import count, islice

import pyarrow as pa

from edl.data.arrow_types import Watched
from edl.errors import SourceError
from edl.sources.staging import Staging, TablePlace, columns_differ
from edl.sources.staging_tables import few_rows

TASK_ROWS = 1 << 40  # more rows than a task has


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


def _number_rows(batches: Iterable[pa.RecordBatch], start: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches with the numbers of their rows as the first column."""
    numbers = count(start)
    for batch in batches:
        first = pa.array(islice(numbers, batch.num_rows), pa.int64())
        yield pa.RecordBatch.from_arrays([first, *batch.columns], names=["", *batch.schema.names])
