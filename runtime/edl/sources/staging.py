"""Result tables of any database: staged invisibly, then swapped in as a whole, exactly once.

The order of the steps is the same for all databases and is defined here; finding, filling and replacing a table is
left to each database's module. The rows that a job stages for a target are in a table `sqlflow_edl_stage_<digest>`
beside it; the bookkeeping tables record what is staged and committed. Each database has a way to mark a table as made
by a job; the mark disappears with the table when a user drops it and creates another one of that name. Sample tables
have the mark, too: they are results of a job `samples…`, which no other job replaces.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from edl.data.arrow_types import Watched, columns_and_batches
from edl.data.names import PROBE, join_quoted, quote_part
from edl.data.source import Source
from edl.errors import SourceError
from edl.sources.appending import columns_for
from edl.sources.staging_tables import RESULTS, STAGED, Bookkeeping, few_rows, without_rows

MARK = "made by sqlflow-edl"
STAGE = "sqlflow_edl_stage_"  # followed by a digest
SAMPLES = "samples"  # beginning of the name of a job that makes sample tables

_SAMPLE = re.compile(re.escape(f"{MARK}, job {SAMPLES}") + r"\b")


class TransactionalSource(Source, Protocol):
    """Source that reports if its caller has a transaction open."""

    @property
    def in_transaction(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Location of a result table.

    `parts` is its full name, `home` the prefix of the internal tables beside it (with a dot at its end), and `quote`
    the database's quotation mark of names.
    """

    parts: tuple[str, ...]
    home: str
    quote: str = '"'

    @property
    def name(self) -> str:
        return join_quoted(self.parts, self.quote)

    def stage_name(self, job: str) -> str:
        return STAGE + hashlib.blake2b(f"{self.name}\0{job}".encode(), digest_size=16).hexdigest()

    def stage_table(self, job: str) -> str:
        return self.home + quote_part(self.stage_name(job), self.quote)


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Staging table and the job that filled it."""

    home: str
    table: str
    job: str


@dataclass(frozen=True, slots=True)
class ExistingTable:
    """Table or view that a result would replace. `mark` is empty for a table that was not made by a job."""

    is_view: bool
    mark: str = ""
    is_temporary: bool = False

    def check(self, target: str, job: str, *, append: bool = False) -> None:
        """Raise SourceError if the job must not replace it, or add rows to it. `target` is the user's text."""
        if self.is_view:
            raise SourceError(
                f"{target} is a view, it cannot hold results", hint="write the results into another table"
            )
        if append and self.is_temporary:
            raise SourceError(
                f"{target} is a temporary table, which ends with its connection",
                hint="add the rows to a table of the database",
            )
        if not append and not self.mark.startswith(MARK):
            raise SourceError(
                f"the table {target} exists and was not made by sqlflow-edl",
                hint="write the results into another table",
            )
        if _SAMPLE.match(self.mark) and not job.startswith(SAMPLES):
            raise SourceError(
                f"{target} is a sample table, it is not {'added to' if append else 'replaced'} by results",
                hint="write the results into another table",
            )


class Staging(ABC):
    """Results of one source. `quote` encloses names; `options` are table options of the bookkeeping."""

    quote = '"'
    options = ""

    def __init__(self, source: TransactionalSource) -> None:
        self._source = source

    def check_target(self, target: str, appended: pa.Schema | None = None) -> None:
        """Raise SourceError if the name is a view, a sample table, or a table that was not made by a job.

        `appended`: columns of rows to add; any table that has them will do.
        """
        self._check(self._place(target), target, "", appended)

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        """Raise MissingRightError if this account could not stage and commit a result, see `Source.check_may_write`."""
        self._source.check_rights(self._statements(self._place(target), append=append))

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
        """Stage a task's rows, see `Source.stage`.

        `batches` is a reader, or has at least one batch (possibly empty), which determines the columns. An attempt
        older than the staged one changes nothing; the returned number is the number of staged rows. Raises RuntimeError
        inside a transaction of the caller.
        """
        if self._source.in_transaction:
            raise RuntimeError("results cannot be staged inside a transaction")
        place = self._place(target)
        schema, batches = columns_and_batches(batches)
        self._check(place, target, job, schema if append else None)
        books = self._books(place, job)
        # A transaction of its own: DuckDB 2.0 loses sight of rows when more than a row group of them goes into a
        # table that CREATE TABLE … AS made empty in the same transaction.
        with self._source.transaction():
            self._make_stage(place, job, schema)
            books.make_tables()
        with self._source.transaction():
            staged = books.read_staged(task)
            if staged and staged[0] > attempt:
                return staged[1]
            rows = self._fill_stage(place, job, task, schema, Watched(batches))
            books.record(task, attempt, rows)
        return rows

    def commit(self, target: str, job: str, tasks: int, *, append: bool = False) -> int:
        """Make the target of the staged rows, or add them to it, see `Source.commit`."""
        place = self._place(target)
        books = self._books(place, job)
        done = books.read_committed()
        if done is not None:
            self.abort(target, job)
            return done
        expected = books.complete(tasks)
        with self._source.transaction():  # another job may have made the table just before
            if append and self._is_of_others(place, target, job):
                rows = self._add(place, target, job, tasks)
            else:
                self._check(place, target, job)
                rows = self._swap(place, job, tasks)
            if rows != expected:
                raise SourceError(
                    f"{expected:,} rows of job {job} were staged, but {rows:,} of them were found"
                )
            books.record_commit(rows)
            self._drop_staged(place, job)
        return rows

    def committed_rows(self, target: str, job: str) -> int | None:
        """Return the number of rows that the job has committed, see `Source.committed_rows`."""
        return self._books(self._place(target), job).read_committed()

    def abort(self, target: str, job: str) -> None:
        """Drop the job's staged rows, see `Source.abort`."""
        place = self._place(target)
        with self._source.transaction():
            self._drop_staged(place, job)

    def sweep(self, is_over: Callable[[str], bool]) -> int:
        """Drop the rows of finished jobs in every writable database, see `Source.sweep`."""
        dead = [stage for stage in self._stages() if is_over(stage.job)]
        for stage in dead:
            with self._source.transaction():
                self._source.execute(
                    f"DROP TABLE IF EXISTS {stage.home}{quote_part(stage.table, self.quote)}"
                )
                self._books(TablePlace((), stage.home), stage.job).forget_all()
        return len(dead)

    # Steps specific to a database -------------------------------------------------------------------------

    @abstractmethod
    def _place(self, target: str) -> TablePlace:
        """Resolve the target as a query would. Raises SourceError if there can be no such table."""

    @abstractmethod
    def _existing(self, place: TablePlace, target: str) -> Iterable[ExistingTable]:
        """Return the tables and views that the target would replace or hide. `target` is the user's text."""

    @abstractmethod
    def _make_stage(self, place: TablePlace, job: str, schema: pa.Schema) -> None:
        """Create the staging table if it does not exist, marked with the job."""

    @abstractmethod
    def _fill_stage(self, place: TablePlace, job: str, task: int, schema: pa.Schema, batches: Watched) -> int:
        """Replace the task's rows in the staging table.

        Return their number. Raises SourceError if it has other columns.
        """

    @abstractmethod
    def _swap(self, place: TablePlace, job: str, tasks: int) -> int:
        """Make the marked target of the rows of tasks 0 … tasks-1, in order. Return their number."""

    @abstractmethod
    def _staged_rows(self, place: TablePlace, job: str, tasks: int) -> tuple[str, str]:
        """Return a query of the staged rows of tasks 0 … tasks-1, without its columns, and the names of their order."""

    @abstractmethod
    def _columns(self, place: TablePlace, job: str) -> list[str]:
        """Return the columns of the staged rows, without the columns of their order."""

    def _required_columns(self, place: TablePlace) -> list[str]:
        """Return the columns without which no row can be added: NOT NULL, and nothing gives them a value."""
        return []

    @abstractmethod
    def _stages(self) -> list[Abandoned]:
        """Return all staging tables that can be dropped."""

    @abstractmethod
    def _exists(self, home: str, table: str) -> bool:
        """Return True if the internal table exists."""

    # Steps -----------------------------------------------------------------------------------------------

    def _statements(self, place: TablePlace, *, append: bool) -> list[str]:
        """Return statements that need the rights of a job that writes the table. They change nothing that is there."""
        others = [place.home + table for table in (STAGED, RESULTS)] + [place.name] * append
        return [f"CREATE TABLE {place.home}{PROBE} (a INTEGER)", *map(without_rows, others)]

    def _check(self, place: TablePlace, target: str, job: str, appended: pa.Schema | None = None) -> None:
        for existing in self._existing(place, target):
            existing.check(target, job, append=appended is not None)
            if appended is not None:
                self._check_appended(place, target, appended)

    def _check_appended(self, place: TablePlace, target: str, appended: pa.Schema) -> list[str]:
        """Return the target's spelling of the columns. Raises SourceError if the rows do not fit into it."""
        columns = [name for name, _ in self._source.column_types(place.name)]

        def described(names: list[str]) -> pa.Schema:
            listed = ", ".join(quote_part(name, self.quote) for name in names)
            return self._source.schema(f"SELECT {listed} FROM {place.name}")

        return columns_for(target, columns, described, appended, self._required_columns(place))

    def _is_of_others(self, place: TablePlace, target: str, job: str) -> bool:
        """Return True if the target exists and was not made by this job, in a commit that stopped at its end."""
        return any(existing.mark != f"{MARK}, job {job}" for existing in self._existing(place, target))

    def _add(self, place: TablePlace, target: str, job: str, tasks: int) -> int:
        """Add the rows of tasks 0 … tasks-1 to the target. Return their number."""
        names = ", ".join(quote_part(name, self.quote) for name in self._columns(place, job))
        rows, order = self._staged_rows(place, job, tasks)
        staged = self._source.schema(f"SELECT {names} {rows}")
        for existing in self._existing(place, target):
            existing.check(target, job, append=True)
        columns = self._check_appended(place, target, staged)
        into = ", ".join(quote_part(name, self.quote) for name in columns)
        self._source.execute(f"INSERT INTO {place.name} ({into}) SELECT {names} {rows} ORDER BY {order}")
        return int(few_rows(self._source, f"SELECT count(*) {rows}")[0][0])

    def _books(self, place: TablePlace, job: str) -> Bookkeeping:
        def exists(table: str) -> bool:
            return self._exists(place.home, table)

        return Bookkeeping(self._source, place.home, exists, place.name, job, self.options)

    def _drop_staged(self, place: TablePlace, job: str) -> None:
        self._source.execute(f"DROP TABLE IF EXISTS {place.stage_table(job)}")
        self._books(place, job).forget()


def columns_differ(task: int, columns: list[str], expected: list[str]) -> SourceError:
    return SourceError(f"task {task} has the columns {columns}, the tasks before it have {expected}")
