"""Bookkeeping of staged and committed results: two tables beside the results, the same in every database.

`sqlflow_edl_staged` records the attempt that staged the rows of each task, `sqlflow_edl_results` the committed results.
They are created when a job first stages rows; queries create nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from edl.data.source import Source
from edl.errors import SourceError

STAGED = "sqlflow_edl_staged"
RESULTS = "sqlflow_edl_results"

_COLUMNS = {
    STAGED: "target VARCHAR(1000), job VARCHAR(1000), task BIGINT, attempt BIGINT, row_count BIGINT",
    RESULTS: "target VARCHAR(1000), job VARCHAR(1000), row_count BIGINT, committed TIMESTAMP",
}


def without_rows(table: str) -> str:
    """Return an INSERT of no rows; a database demands the same rights for it as for other INSERTs."""
    return f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0"


def few_rows(source: Source, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a small result."""
    reader = source.execute(query, parameters)
    table = reader.read_all() if reader is not None else pa.table({})
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """Bookkeeping of one target and job.

    `home` is the prefix of internal tables, `exists` tests if an internal table exists, and `options` are table
    options of the database.
    """

    source: Source
    home: str
    exists: Callable[[str], bool]
    target: str
    job: str
    options: str = ""

    def make_tables(self) -> None:
        for table, columns in _COLUMNS.items():
            self.source.execute(f"CREATE TABLE IF NOT EXISTS {self.home}{table} ({columns}){self.options}")

    def read_staged(self, task: int) -> tuple[int, int] | None:
        """Return the attempt that staged rows for the task, and their number."""
        query = (
            f"SELECT attempt, row_count FROM {self.home}{STAGED} WHERE target = ? AND job = ? AND task = ?"
        )
        rows = few_rows(self.source, query, (self.target, self.job, task))
        return (int(rows[0][0]), int(rows[0][1])) if rows else None

    def record(self, task: int, attempt: int, rows: int) -> None:
        key = (self.target, self.job, task)
        table = self.home + STAGED
        self.source.execute(f"DELETE FROM {table} WHERE target = ? AND job = ? AND task = ?", key)
        self.source.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", (*key, attempt, rows))

    def complete(self, tasks: int) -> int:
        """Return the number of staged rows.

        Raises SourceError if a task has none staged, not even an empty result.
        """
        staged: dict[int, int] = {}
        if self.exists(STAGED):
            query = (
                f"SELECT task, row_count FROM {self.home}{STAGED} WHERE target = ? AND job = ? AND task < ?"
            )
            staged = dict(few_rows(self.source, query, (self.target, self.job, tasks)))
        check_complete(staged, tasks, self.job)
        return sum(staged.values())

    def read_committed(self) -> int | None:
        """Return the number of rows that the job committed to the target, or None if it has not committed."""
        if not self.exists(RESULTS):
            return None
        query = f"SELECT row_count FROM {self.home}{RESULTS} WHERE target = ? AND job = ?"
        rows = few_rows(self.source, query, (self.target, self.job))
        return int(rows[0][0]) if rows else None

    def record_commit(self, rows: int) -> None:
        now = datetime.now(UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")
        self.source.execute(
            f"INSERT INTO {self.home}{RESULTS} VALUES (?, ?, ?, ?)", (self.target, self.job, rows, now)
        )

    def forget(self) -> None:
        """Delete the records of the job's staged rows for this target."""
        if self.exists(STAGED):
            self.source.execute(
                f"DELETE FROM {self.home}{STAGED} WHERE target = ? AND job = ?", (self.target, self.job)
            )

    def forget_all(self) -> None:
        """Delete the records of the job's staged rows for all targets."""
        if self.exists(STAGED):
            self.source.execute(f"DELETE FROM {self.home}{STAGED} WHERE job = ?", (self.job,))


def check_complete(staged: Collection[int], tasks: int, job: str) -> None:
    """Raise SourceError if one of the tasks 0 … tasks-1 is not in `staged`, not even with an empty result."""
    missing = [task for task in range(tasks) if task not in staged]
    if missing or not tasks:
        raise SourceError(
            f"{len(missing)} of the {tasks} tasks of job {job} have no staged rows"
            + (f", the first is task {missing[0]}" if missing else "")
        )
