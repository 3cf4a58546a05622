"""Results in MaxCompute. It has no transactions, so the tables present after each step record the progress.

A job stages for a target in a table beside it, `sqlflow_edl_stage_<digest>`, with a partition of rows for each
attempt of a task. An upload replaces a partition once it is complete, so rows are never duplicated. A second
partition without rows, added after that, marks the attempt as complete; its name holds the number of rows.

`commit` makes a new table of the rows beside the target, marks it as a result, and swaps it in by renaming; the table
that it replaces exists under another name until then. A repeated `commit`, or `sweep`, completes an unfinished swap.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from edl.data.arrow_types import columns_and_batches, rechunk_rows
from edl.data.names import free_name
from edl.data.source import ConflictError
from edl.errors import SourceError
from edl.sources.appending import columns_for, is_added
from edl.sources.maxcompute import types
from edl.sources.maxcompute.sql import check_column, quote_name, split_name, text
from edl.sources.staging import MARK, STAGE, ExistingTable, columns_differ
from edl.sources.staging_tables import check_complete

if TYPE_CHECKING:
    from edl.sources.maxcompute.source import MaxComputeSource

LIFECYCLE = 7  # days after which MaxCompute drops abandoned tables
RESULTS = "sqlflow_edl_results"

_NEW, _OLD = "sqlflow_edl_new_", "sqlflow_edl_old_"
_PARTS = ("sqlflow_edl_task", "sqlflow_edl_attempt", "sqlflow_edl_part")
_BEFORE = re.compile(r"added to (\d+) rows")
_RESULT_COLUMNS = "target STRING, job STRING, row_count BIGINT"


@dataclass(frozen=True, slots=True)
class ResultNames:
    """Names of the tables of a target and a job."""

    target: str
    digest: str

    @classmethod
    def of(cls, target: str, job: str) -> ResultNames:
        table = split_name(target)[-1].lower()
        return cls(table, hashlib.blake2b(f"{table}\0{job}".encode(), digest_size=16).hexdigest())

    @property
    def stage(self) -> str:
        return STAGE + self.digest

    @property
    def new(self) -> str:
        return _NEW + self.digest

    @property
    def old(self) -> str:
        return _OLD + self.digest


class MaxComputeResults:
    """Results of one project."""

    def __init__(self, source: MaxComputeSource) -> None:
        self._source = source

    def check_target(self, target: str, appended: pa.Schema | None = None) -> None:
        self._check(target, "", appended)

    def _check(self, target: str, job: str, appended: pa.Schema | None = None) -> bool:
        """Return True if the target exists. Raises SourceError if the job must not replace it, or add rows to it."""
        parts = split_name(target)
        if len(parts) > 1 and parts[0].lower() != self._source.client.project.lower():
            raise SourceError(
                f"{target} is in another project", hint=f"write results into {self._source.client.project}"
            )
        existing = self._source.table(parts[-1])
        if existing is not None:
            append = appended is not None
            ExistingTable(existing.is_virtual_view, existing.comment or "").check(target, job, append=append)
        if existing is not None and appended is not None:
            self._columns_for(existing, appended)
        return existing is not None

    def stage(
        self,
        target: str,
        job: str,
        task: int,
        attempt: int,
        batches: Iterable[pa.RecordBatch],
        *,
        append: bool = False,
    ) -> int:
        schema, batches = columns_and_batches(batches)
        self._check(target, job, schema if append else None)
        names = ResultNames.of(target, job)
        row = free_name("sqlflow_edl_row", schema.names)
        self._make_stage(names, job, schema, row)
        self._check_columns(names, task, schema)
        staged = self._staged_attempts(names).get(task)
        if staged is not None and staged[0] > attempt:
            return staged[1]
        rows = self._source.replace_partition(
            names.stage, _values(task, attempt, "rows"), _number_rows(batches, schema, row)
        )
        for part in self._parts(names):
            if part[:2] == (task, attempt) and part[2] != "rows":
                self._source.drop_partition(names.stage, _values(*part))
        with suppress(ConflictError):  # the same attempt again
            self._source.add_partition(names.stage, _values(task, attempt, f"done_{rows}"))
        return rows

    def commit(self, target: str, job: str, tasks: int, *, append: bool = False) -> int:
        names = ResultNames.of(target, job)
        done = self._read_committed(names, job)
        if done is not None:
            self.abort(target, job)
            return done
        if append and self._source.table(names.target) is not None:
            rows = self._add_rows(names, job, tasks)
        else:
            self._check(target, job)
            rows = self._make_table(names, job, tasks)
            if append and self._source.table(names.target) is not None:  # another job has made it meanwhile
                rows = self._add_rows(names, job, tasks)
            else:
                self._swap(names)
        self._record(names, job, rows)
        self.abort(target, job)
        return rows

    def committed_rows(self, target: str, job: str) -> int | None:
        return self._read_committed(ResultNames.of(target, job), job)

    def abort(self, target: str, job: str) -> None:
        self._end(ResultNames.of(target, job))

    def sweep(self, is_over: Callable[[str], bool]) -> int:
        dead = []
        for entry in self._source.list_objects(STAGE):
            job, _, target = (getattr(self._source.table(entry.name), "comment", None) or "").partition("\n")
            if target and is_over(job):
                dead.append(ResultNames(target, entry.name.removeprefix(STAGE)))
        for names in dead:
            self._end(names)
        return len(dead)

    # Steps -----------------------------------------------------------------------------------------------

    def _make_stage(self, names: ResultNames, job: str, schema: pa.Schema, row: str) -> None:
        columns = [f"`{row}` BIGINT"]
        for field in schema:
            check_column(field.name)
            columns.append(f"`{field.name}` {types.declare_type(field)}")
        task, attempt, part = _PARTS
        comment = text(f"{job}\n{names.target}")
        self._source.run(
            f"CREATE TABLE IF NOT EXISTS {quote_name(names.stage)} ({', '.join(columns)}) COMMENT {comment}"
            f" PARTITIONED BY ({task} BIGINT, {attempt} BIGINT, {part} STRING) LIFECYCLE {LIFECYCLE}"
        )

    def _check_columns(self, names: ResultNames, task: int, schema: pa.Schema) -> None:
        present = [column.name for column in self._need(names.stage).table_schema.simple_columns][1:]
        if present != [name.lower() for name in schema.names] and present != schema.names:
            raise columns_differ(task, schema.names, present)

    def _parts(self, names: ResultNames) -> list[tuple[int, int, str]]:
        """Return task, attempt and part of each existing partition."""
        specs = self._source.partitions(names.stage)
        return [(int(spec[_PARTS[0]]), int(spec[_PARTS[1]]), spec[_PARTS[2]]) for spec in specs]

    def _staged_attempts(self, names: ResultNames) -> dict[int, tuple[int, int]]:
        """Return each task's latest complete attempt and its number of rows."""
        attempts: dict[int, tuple[int, int]] = {}
        for task, attempt, part in sorted(self._parts(names)):
            if part.startswith("done_"):
                attempts[task] = (attempt, int(part.removeprefix("done_")))
        return attempts

    def _make_new(self, names: ResultNames, job: str, attempts: dict[int, int]) -> None:
        row, *columns = (f"`{column.name}`" for column in self._need(names.stage).table_schema.simple_columns)
        task, attempt, part = _PARTS
        chosen = " OR ".join(f"({task} = {t} AND {attempt} = {a})" for t, a in attempts.items())
        self._drop(names.new)
        self._source.run(
            f"CREATE TABLE {quote_name(names.new)} LIFECYCLE {LIFECYCLE} AS SELECT {', '.join(columns)} FROM"
            f" (SELECT {', '.join(columns)}, {task}, {row} FROM {quote_name(names.stage)}"
            f" WHERE {part} = 'rows' AND ({chosen})) staged ORDER BY {task}, {row}"
        )
        mark = text(f"{MARK}, job {job}")
        self._source.run(f"ALTER TABLE {quote_name(names.new)} SET COMMENT {mark}")
        self._source.run(f"ALTER TABLE {quote_name(names.new)} DISABLE LIFECYCLE")

    def _make_table(self, names: ResultNames, job: str, tasks: int) -> int:
        """Make the new table. Return the number of its rows."""
        staged = self._staged_attempts(names)
        check_complete(staged, tasks, job)
        expected = sum(staged[task][1] for task in range(tasks))
        self._make_new(names, job, {task: staged[task][0] for task in range(tasks)})
        rows = self._count(names.new)
        if rows != expected:
            self._drop(names.new)
            raise SourceError(f"{expected:,} rows of job {job} were staged, but {rows:,} of them were found")
        return rows

    def _add_rows(self, names: ResultNames, job: str, tasks: int) -> int:
        """Add the rows to the target, unless a commit before did. Return their number.

        The comment of the new table has the number of rows of the target before.
        """
        new = self._source.table(names.new)
        before = _BEFORE.search(getattr(new, "comment", None) or "")
        if before is not None:
            rows = self._count(names.new)
            if is_added(names.target, int(before[1]), self._all(names.target), rows):
                return rows
        else:
            rows = self._make_table(names, job, tasks)
            count = self._all(names.target)
            self._source.run(
                f"ALTER TABLE {quote_name(names.new)} SET COMMENT {text(f'added to {count} rows')}"
            )
        existing, new = self._need(names.target), self._need(names.new)
        added = types.schema(types.columns(new.table_schema.simple_columns))
        names_added = dict(
            zip((name.lower() for name in self._columns_for(existing, added)), added.names, strict=True)
        )
        values = [
            f"`{names_added[column.name.lower()]}`"
            if column.name.lower() in names_added
            else f"CAST(NULL AS {column.type}) AS `{column.name}`"
            for column in existing.table_schema.columns
        ]
        parts = ", ".join(f"`{part.name}`" for part in existing.table_schema.partitions)
        self._source.run(
            f"INSERT INTO TABLE {quote_name(names.target)}{f' PARTITION ({parts})' if parts else ''}"
            f" SELECT {', '.join(values)} FROM {quote_name(names.new)}"
        )
        return rows

    def _columns_for(self, target: Any, added: pa.Schema) -> list[str]:
        """Return the target's spelling of the columns.

        Raises SourceError if they do not fit, or a column of the partition is not among them.
        """
        present = {column.name: column for column in target.table_schema.columns}

        def described(names: list[str]) -> pa.Schema:
            return types.schema(types.columns(present[name] for name in names))

        needed = [column.name for column in target.table_schema.simple_columns if not column.nullable]
        names_found = columns_for(target.name, [*present], described, added, needed)
        missing = [part.name for part in target.table_schema.partitions if part.name not in names_found]
        if missing:
            raise SourceError(
                f"the table {target.name} is partitioned by {', '.join(missing)}, which the rows do not have",
                hint=f"select the partition: SELECT *, '…' AS {missing[0]} FROM …",
            )
        return names_found

    def _count(self, table: str) -> int:
        with self._source.errors():
            return int(self._source.client.download(table).count)

    def _all(self, table: str) -> int:
        """Return the number of rows of a table, in all its partitions."""
        return int(self._source.few_rows(f"SELECT COUNT(*) AS n FROM {quote_name(table)}")[0][0])

    def _swap(self, names: ResultNames) -> None:
        """Replace the target by the new table."""
        if self._source.table(names.target) is not None:
            self._source.run(f"ALTER TABLE {quote_name(names.target)} RENAME TO {quote_name(names.old)}")
        self._source.run(f"ALTER TABLE {quote_name(names.new)} RENAME TO {quote_name(names.target)}")

    def _end(self, names: ResultNames) -> None:
        """Drop the staged rows, and restore a table after an unfinished swap."""
        if self._source.table(names.old) is not None:
            if self._source.table(names.target) is None:
                self._source.run(f"ALTER TABLE {quote_name(names.old)} RENAME TO {quote_name(names.target)}")
            else:
                self._drop(names.old)
        for table in (names.new, names.stage):
            self._drop(table)

    def _drop(self, table: str) -> None:
        self._source.run(f"DROP TABLE IF EXISTS {quote_name(table)}")

    def _read_committed(self, names: ResultNames, job: str) -> int | None:
        """Return the number of rows that the job committed to the target, or None if it has not committed."""
        if self._source.table(RESULTS) is not None:
            query = (
                f"SELECT row_count FROM {RESULTS} WHERE target = {text(names.target)} AND job = {text(job)}"
            )
            if answer := self._source.few_rows(query):
                return int(answer[0][0])
        existing = self._source.table(names.target)
        if existing is None or existing.comment != f"{MARK}, job {job}":
            return None
        # The client that wrote the rows died before it recorded their number.
        rows = int(self._source.client.download(names.target).count)
        self._record(names, job, rows)
        return rows

    def _record(self, names: ResultNames, job: str, rows: int) -> None:
        self._source.run(f"CREATE TABLE IF NOT EXISTS {RESULTS} ({_RESULT_COLUMNS})")
        self._source.run(
            f"INSERT INTO TABLE {RESULTS} SELECT {text(names.target)}, {text(job)}, CAST({rows} AS BIGINT)"
        )

    def _need(self, name: str) -> Any:
        table = self._source.table(name)
        if table is None:
            raise SourceError(f"the table {name} is gone")
        return table


def _number_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows with their number in the task as the first column."""
    numbered = schema.insert(0, pa.field(name, pa.int64()))
    at = 0
    for batch in rechunk_rows(batches, schema):
        numbers = pa.array(np.arange(at, at + batch.num_rows))
        yield pa.RecordBatch.from_arrays([numbers, *batch.columns], schema=numbered)
        at += batch.num_rows


def _values(task: int, attempt: int, part: str) -> dict[str, str]:
    return dict(zip(_PARTS, (str(task), str(attempt), part), strict=True))
