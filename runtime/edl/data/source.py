"""Contract of a data source: fixed rows in, whole tables out.

One class per database implements `Source`; `connect` selects it by the scheme of a URL. A job reads a *fixed* set of
rows made by `pin`: row m is the same row for every worker, in every epoch, after every restart. Data moves in
columnar batches (`pyarrow.RecordBatch`); nothing here loops over rows in Python or holds a whole table in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, runtime_checkable

import msgspec

from edl import reachability
from edl.errors import SourceError, Span, UnfitValueError
from edl.spec import Field, Split, ValidationBlocks

if TYPE_CHECKING:
    import pyarrow as pa


class ConflictError(SourceError):
    """Another connection changed the same rows first, or this one was lost; the whole transaction may be retried."""


class UnreachableError(SourceError):
    """The source cannot be reached or accepts no connections at the moment; a retry may succeed.

    In a pod the hint is what to check there: the client has reached the source.
    """

    def __init__(self, message: str, *, span: Span | None = None, hint: str | None = None) -> None:
        advice = reachability.advice()
        in_pod = f"pods do not reach it, though the client did: {advice}"
        super().__init__(message, span=span, hint=in_pod if advice else hint)


class LockedError(SourceError):
    """Another process has the file of the source open, and one alone can have it open."""


class MissingRightError(SourceError):
    """The account may not do this, or the database only reads."""


class PinnedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pinned rows that stay in their source.

    `name` is the table's as a query writes it, `key` the column that numbers its rows from 1, and `session` the
    database's id of the download that all processes share.
    """

    name: str
    key: str = ""
    session: str = ""


class Pinned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fixed, ordered set of rows. JSON without secrets, stored with the job.

    `file` holds the rows, relative to the folder in which they are pinned; it is empty if they are in `table`, the
    place in the source from which every process then reads them itself. `digest` covers the schema and all values in
    order; equal digests mean equal rows. `validation` is the number of rows that are not trained on, the last ones;
    None if the rows were pinned without a split. `blocks` belong to a split with folds; then `validation` counts the
    first block and the test rows. `unfit` names the columns with a value that has no place in the column's type,
    each with the message and the hint of the error that reading it raises.
    """

    source: str  # URL without password
    select: str
    file: str
    rows: int
    schema: tuple[Field, ...]
    digest: str
    seed: int
    shuffled: bool
    table: PinnedTable | None = None
    validation: int | None = None
    blocks: ValidationBlocks | msgspec.UnsetType = msgspec.UNSET
    unfit: dict[str, tuple[str, str]] | msgspec.UnsetType = msgspec.UNSET

    def check_fits(self, columns: Iterable[str] | None = None) -> None:
        """Raise UnfitValueError if one of the columns, or any for None, has a value that is none of its type."""
        unfit = self.unfit or {}
        if read := {name: unfit[name] for name in (unfit if columns is None else columns) if name in unfit}:
            raise UnfitValueError.of(read)


@dataclass(frozen=True, slots=True)
class RowEstimate:
    """Rows of a query. size: their bytes in Arrow. seconds: of reading them, None if that is not known.

    is_counted: `rows` is exact. is_bound: there may be fewer.
    """

    rows: int
    size: float
    seconds: float | None = None
    is_counted: bool = False
    is_bound: bool = False


class PinningRates(NamedTuple):
    """Seconds of a byte: of copying it, and of ordering it before. They were measured on two cores in November 2026."""

    copy: float
    order: float
    in_server: bool = False


class Reader(Protocol):
    """Reader of ranges of pinned rows. Cheap to open in another process, safe to use from several threads."""

    rows: int
    schema: pa.Schema

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order; 0 <= start <= end <= rows.

        `columns` selects and orders columns; None is all.
        """
        ...


class Results(Protocol):
    """Tables made by jobs: rows are staged task by task and become a table in one step.

    Methods raise the same errors as `Source`.
    """

    def check_target(self, target: str, appended: pa.Schema | None = None) -> None:
        """Raise SourceError if `commit` of a job's result would refuse `target`. Call it before the work.

        `appended`: columns of rows that are to be added to the table.
        """
        ...

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
        """Stage a task's rows beside `target`, invisibly, replacing that task's earlier attempts.

        `append`: they are to be added to the table. Return their number.
        """
        ...

    def commit(self, target: str, job: str, tasks: int, *, append: bool = False) -> int:
        """Make the staged rows of tasks 0 … tasks-1, in that order, the table `target`, in one step; idempotent.

        `append`: add them to that table instead, whoever made it; without one, it is made. Return the number of rows.
        Raises SourceError if a table of that name exists that was not made by a job, or is a sample table and `job` is
        not one that makes them.
        """
        ...

    def committed_rows(self, target: str, job: str) -> int | None:
        """Return the number of rows that the job has committed to `target`; None if it is not known to have."""
        ...

    def abort(self, target: str, job: str) -> None:
        """Drop the rows staged by the job; `target` stays as it is."""
        ...

    def sweep(self, is_over: Callable[[str], bool]) -> int:
        """Drop the rows staged by jobs that are over. Return how many jobs' were dropped."""
        ...


class Source(Results, Protocol):
    """Open connection to a database. Errors are `SourceError` with the database's own message."""

    url: str  # without password
    dialect: str  # as sqlglot names it
    temporary_tables: bool  # a connection may have tables for a while, see `stage_temporary`
    temporary_tables_are_private: bool  # no other connection sees them
    model_store: str  # folder of the models by default, if they are not in the database
    kept_in: str  # file of the models and results of a source that is no database itself, or empty
    home: str  # prefix of the tables kept by this program: quoted, with a dot at its end, or empty
    finds_syntax_errors: bool  # of statements that it does not run, see `syntax_error`

    @property
    def has_open_transaction(self) -> bool:
        """True if the user has begun a transaction: a failing query may undo it."""
        ...

    def schema(self, query: str) -> pa.Schema:
        """Return names and types of the query's columns, without running it."""
        ...

    def column_types(self, table: str) -> list[tuple[str, str]]:
        """Return names of the table's columns and their types as the database writes them. `table` as in a query."""
        ...

    def stream(self, query: str, *, batch_rows: int = 65_536) -> pa.RecordBatchReader:
        """Stream the query's rows in its own order. The next statement on this source ends the stream."""
        ...

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        """Fix the query's rows, in `folder` or as a private table in the source.

        `shuffle`: in a random order that is a function of the rows themselves and `seed`, not of the order in which
        the database happens to yield them; otherwise in the query's order. `split`: in such a random order, the
        training rows first and the validation rows after them.
        """
        ...

    def unpin(self, pinned: Pinned, folder: Path) -> None:
        """Remove the fixed rows. Idempotent."""
        ...

    def how_rows_are_kept(self) -> str:
        """Describe what `pin` does with the rows of this source, for display in a plan; empty if that is usual."""
        ...

    def estimate_rows(self, query: str) -> RowEstimate | None:
        """Estimate the rows of a query within a fraction of a second; None if that is not possible.

        The user's session and transaction are not touched. Raises SourceError as a query does.
        """
        ...

    def pinning_rates(self) -> PinningRates | None:
        """Return how fast `pin` copies and orders rows of this source; None if that is not known."""
        ...

    def unpin_abandoned(self) -> int:
        """Drop the tables of pinned rows without a folder, left by clients that died. Return their number."""
        ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> pa.RecordBatchReader | None:
        """Run one statement of the database's own SQL. Return its rows, or None if it has none.

        The rows are shown: they may be `edl.data.displayed_rows.DisplayedRows`, with texts where a value has no type.
        `parameters` are the values of its `?`, whatever placeholder the database itself uses.
        """
        ...

    def check_rights(self, statements: Sequence[str]) -> None:
        """Raise MissingRightError if the account may not run one of the statements, as far as the database tells.

        None of them has an effect. The user's session and transaction are not touched.
        """
        ...

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        """Raise MissingRightError if the account may not make the table `target`, or add rows to it."""
        ...

    def syntax_error(self, sql: str) -> SourceError | None:
        """Return the error of one statement that the database's own parser refuses, without running it.

        None if it accepts the statement, whatever tables it names, or cannot tell. The user's session and transaction
        are not touched.
        """
        ...

    def commit_rows(
        self, target: str, job: str, attempt: int, batches: Iterable[pa.RecordBatch], *, append: bool = False
    ) -> int:
        """Stage rows that are all there, and commit them. attempt: number of the call, as of `stage`.

        A source may write them once, without staging them. Return their number. Raises what both raise.
        """
        ...

    def stage_temporary(self, name: str, batches: pa.RecordBatchReader) -> None:
        """Make the rows a table for this connection. `name` has letters, digits and underscores."""
        ...

    def drop_temporary(self, name: str) -> None:
        """Drop such a table, if it is there."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit at the end, roll back on an exception. A nested transaction joins the outer one."""
        ...

    def tables(self) -> list[str]:
        """Return names of tables and views as a query would write them, for messages and completion."""
        ...

    def databases(self) -> list[str]:
        """Return names of the databases, or projects, that may hold tables."""
        ...

    def interrupt(self) -> None:
        """Stop the running statement, if any. The only method that may be called from another thread."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


@runtime_checkable
class ReleasableSource(Protocol):
    """Source over a file that one process alone can have open."""

    def release(self) -> None:
        """Close the file until the next statement, unless the session has a state that would be lost, as a transaction,
        temporary tables, settings, or a result that is not read to its end.
        """
        ...

    def reopen(self) -> None:
        """Open the file again, if it is closed. Raises LockedError if another process has it open."""
        ...


@runtime_checkable
class TextSource(Protocol):
    """Source of files of texts: the types of columns are found in their values, or stated by a model.

    `notes`: lines on how the files are read, where that is not plain. `readings`: names of the readings of the columns,
    as they were found or stated; see `edl.data.files.csv_readings`.
    """

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def readings(self) -> Mapping[str, str]: ...

    def misfits(self, readings: Mapping[str, str]) -> dict[str, SourceError]:
        """Return an error for each column that has a value which its reading does not fit, from one pass."""
        ...

    def read_as(self, readings: Mapping[str, str]) -> None:
        """Read these columns so from now on, and the others as they were found."""
        ...
