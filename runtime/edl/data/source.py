"""The contract of a data source: fixed rows in, whole tables out.

One class per database implements `Source`; `connect` chooses it by the scheme of a URL. A job reads a *fixed* set of
rows: `pin` makes one, and from then on row m is the same row for every worker, in every epoch, after every restart.
What moves is the columnar batch (`pyarrow.RecordBatch`); nothing here loops over rows in Python or holds a whole
table in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import msgspec

from edl.errors import SourceError
from edl.spec import Field

if TYPE_CHECKING:
    import pyarrow as pa


class ConflictError(SourceError):
    """Another connection changed the same rows first, or ours was lost; the whole transaction may be tried again."""


class UnreachableError(SourceError):
    """The source cannot be reached now, or takes nobody in; it may be later."""


class PinnedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pinned rows that stay in their source.

    name: of the table, as a query writes it. key: its column that numbers the rows from 1. session: what the
    database calls the download that all processes share.
    """

    name: str
    key: str = ""
    session: str = ""


class Pinned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fixed, ordered set of rows. JSON without secrets; it travels with the job.

    file: what holds the rows, relative to the folder where they are pinned; empty when they lie in `table`.
    table: where in the source the rows are, which every process then reads itself.
    digest: of the schema and all values in order; equal digests mean equal rows.
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


class Reader(Protocol):
    """Reads ranges of pinned rows; cheap to open in another process, safe to use from several threads."""

    rows: int
    schema: pa.Schema

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Rows [start, end) in order; 0 <= start <= end <= rows. columns: which, in that order; None is all."""
        ...


class Results(Protocol):
    """Tables that jobs make: rows are staged task by task, and become a table at once. Errors as those of `Source`."""

    def check_target(self, target: str) -> None:
        """SourceError when `commit` would refuse to make `target`: ask before the work, not after it."""
        ...

    def stage(self, target: str, job: str, task: int, attempt: int, batches: Iterable[pa.RecordBatch]) -> int:
        """Keep a task's rows beside `target`, invisible; replaces that task's earlier attempts. Returns the rows."""
        ...

    def commit(self, target: str, job: str, tasks: int) -> int:
        """Make the staged rows of tasks 0 … tasks-1, in that order, the table `target`, in one step; idempotent.

        A table of that name that no job of ours made is never replaced (SourceError). Returns the rows.
        """
        ...

    def abort(self, target: str, job: str) -> None:
        """Drop what the job staged; `target` stays as it was."""
        ...

    def sweep(self, is_over: Callable[[str], bool]) -> int:
        """Drop what jobs staged of which nothing comes any more; how many were dropped."""
        ...


class Source(Results, Protocol):
    """An open connection to a database. Errors are `SourceError` with the database's own words."""

    url: str  # without password
    dialect: str  # as sqlglot names it
    home: str  # what qualifies the tables that we keep for ourselves, quoted, with a dot at its end, or empty

    def schema(self, query: str) -> pa.Schema:
        """Names and types of the query's columns, without running it."""
        ...

    def column_types(self, table: str) -> list[tuple[str, str]]:
        """Names of the table's columns, and their types as the database writes them. table: as a query names it."""
        ...

    def stream(self, query: str, *, batch_rows: int = 65_536) -> pa.RecordBatchReader:
        """The query's rows, in its own order, as they come; the next statement on this source ends it."""
        ...

    def pin(self, query: str, folder: Path, *, seed: int, shuffle: bool) -> Pinned:
        """Fix the query's rows, in `folder` or as a table of ours in the source.

        shuffle: in a random order that is a function of the rows themselves and `seed`, not of the order in which
        the database happens to yield them; otherwise in the query's order.
        """
        ...

    def unpin(self, pinned: Pinned, folder: Path) -> None:
        """Remove the fixed rows; nothing happens when they are gone already."""
        ...

    def how_rows_are_kept(self) -> str:
        """What `pin` costs here, for a plan to say, where that is worth a word."""
        ...

    def unpin_abandoned(self) -> int:
        """Drop the tables of pinned rows whose folders are gone, because their client died; how many."""
        ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> pa.RecordBatchReader | None:
        """Run one statement of the database's own SQL; its rows, None when it has none.

        parameters: the values of its `?`, whatever the database itself would write.
        """
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit at the end, roll back on an exception; inside another transaction, be part of that one."""
        ...

    def tables(self) -> list[str]:
        """Names of tables and views as a query would write them, for messages and completion."""
        ...

    def databases(self) -> list[str]:
        """Names of the databases, or projects, in which there may be tables."""
        ...

    def interrupt(self) -> None:
        """Stop the statement that runs, if one does; the only call that may come from another thread."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...
