"""What is staged and what was committed: two tables beside the results, the same in every database.

`sqlflow_edl_staged` says which task's rows are staged by which attempt, `sqlflow_edl_results` what was committed.
They are made when a job first stages rows; asking makes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def few_rows(source: Source, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """The rows of a small answer."""
    reader = source.execute(query, parameters)
    table = reader.read_all() if reader is not None else pa.table({})
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """Of one target and job. home: what qualifies our tables; exists: whether a table of ours is there.

    options: what the database is told beside the columns of a new table.
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

    def staged(self, task: int) -> tuple[int, int] | None:
        """The attempt whose rows are staged for the task, and how many they are."""
        query = (
            f"SELECT attempt, row_count FROM {self.home}{STAGED} WHERE target = ? AND job = ? AND task = ?"
        )
        found = few_rows(self.source, query, (self.target, self.job, task))
        return (int(found[0][0]), int(found[0][1])) if found else None

    def record(self, task: int, attempt: int, rows: int) -> None:
        key = (self.target, self.job, task)
        table = self.home + STAGED
        self.source.execute(f"DELETE FROM {table} WHERE target = ? AND job = ? AND task = ?", key)
        self.source.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", (*key, attempt, rows))

    def complete(self, tasks: int) -> int:
        """The number of staged rows. SourceError: a task has none staged, not even an empty result."""
        staged: dict[int, int] = {}
        if self.exists(STAGED):
            query = (
                f"SELECT task, row_count FROM {self.home}{STAGED} WHERE target = ? AND job = ? AND task < ?"
            )
            staged = dict(few_rows(self.source, query, (self.target, self.job, tasks)))
        missing = [task for task in range(tasks) if task not in staged]
        if missing or not tasks:
            raise SourceError(
                f"{len(missing)} of the {tasks} tasks of job {self.job} have no staged rows"
                + (f", the first is task {missing[0]}" if missing else "")
            )
        return sum(staged.values())

    def committed(self) -> int | None:
        """How many rows the job committed to the target; None when it has not."""
        if not self.exists(RESULTS):
            return None
        query = f"SELECT row_count FROM {self.home}{RESULTS} WHERE target = ? AND job = ?"
        found = few_rows(self.source, query, (self.target, self.job))
        return int(found[0][0]) if found else None

    def record_commit(self, rows: int) -> None:
        now = datetime.now(UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")
        self.source.execute(
            f"INSERT INTO {self.home}{RESULTS} VALUES (?, ?, ?, ?)", (self.target, self.job, rows, now)
        )

    def forget(self) -> None:
        """The job has nothing staged for the target any more."""
        if self.exists(STAGED):
            self.source.execute(
                f"DELETE FROM {self.home}{STAGED} WHERE target = ? AND job = ?", (self.target, self.job)
            )

    def forget_all(self) -> None:
        """The job has nothing staged any more, for any target."""
        if self.exists(STAGED):
            self.source.execute(f"DELETE FROM {self.home}{STAGED} WHERE job = ?", (self.job,))
