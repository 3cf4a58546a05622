"""Construction of tables of pinned rows on a server, see `edl.sources.pinned_tables`.

Pinning takes three steps. `CREATE TABLE … AS` takes a snapshot of the query in the server. If rows are to be shuffled,
the client reads them once, computes the order that every source gives them (`edl.sources.row_order`) and sends back
each row's place, 8 to 12 bytes; then the server writes the rows in that order. A row of the table of places has those
of a block of rows, so that it is written, and joined to the rows, in a small part of the time of a row for each.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET

from edl.data.arrow_types import fields
from edl.data.names import free_name, join_quoted
from edl.data.source import Pinned, PinnedTable
from edl.errors import SourceError, UnfitValueError
from edl.sources import pinned_tables
from edl.sources.pinned_tables import BLOCK, PLACES, find_places
from edl.sources.row_order.keyed_rows import shuffled_keys
from edl.sources.row_order.units import ValidationRows
from edl.sources.words import strip_end
from edl.spec import Split

Ints = npt.NDArray[np.int64]
Unfit = dict[
    str, UnfitValueError
]  # by column: the error of reading a value that is none of the column's type


MANY_ROWS = 50_000  # for which two statements at the same time are worth another connection
_BLOCKS = 500  # that are sent at a time


class PinningSource(Protocol):
    """Source of the rows, as far as pinning uses it."""

    url: str

    def execute(self, sql: str) -> object: ...

    def append(self, table: str, names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> None: ...

    def transaction(self) -> AbstractContextManager[None]: ...


S = TypeVar("S", bound=PinningSource)


class RowTables(NamedTuple):
    """Tables of one pinning: the rows as they came, in their order, and their places until they are ordered."""

    snapshot: PinnedTable
    ordered: PinnedTable
    places: PinnedTable


class Pinning(ABC, Generic[S]):
    """Construction of one pinned table.

    home: what the table's name begins with, without quotation marks. quote: of names.
    """

    quote = '"'

    def __init__(self, source: S, home: str, schema: pa.Schema, folder: Path) -> None:
        self.source = source
        self.schema = schema
        self.folder = folder
        key = free_name("sqlflow_edl_place", schema.names)
        names = (join_quoted((home, pinned_tables.new_name()), self.quote) for _ in RowTables._fields)
        self._tables = RowTables(*(PinnedTable(name, key) for name in names))

    def pin(self, query: str, *, seed: int, shuffle: bool, split: Split | None = None) -> Pinned:
        """Pin the rows of the query. Raises DeniedError if tables cannot be created; then nothing was."""
        self.folder.mkdir(parents=True, exist_ok=True)
        shuffle = shuffle or split is not None
        final, held = self._tables.snapshot, ValidationRows(0) if split else None
        try:
            rows = self._snapshot(final, strip_end(query))
            unfit = self._find_unfit(final)
            if shuffle and rows > 1:
                final, held = self._tables.ordered, self._order(rows, unfit, seed, split)
            digest = self._digest(self._finish(final, rows))
        except BaseException:
            with suppress(SourceError):
                self._drop(*self._tables)
            raise
        return Pinned(
            source=self.source.url,
            select=query,
            file="",
            rows=rows,
            schema=fields(self.schema),
            digest=digest,
            seed=seed,
            shuffled=shuffle,
            table=final,
            validation=None if held is None else held.rows,
            blocks=UNSET if held is None else held.blocks,
            unfit={name: (error.message, error.hint or "") for name, error in unfit.items()} or UNSET,
        )

    # Steps specific to a database ------------------------------------------------------------------------

    @abstractmethod
    def _snapshot(self, table: PinnedTable, query: str) -> int:
        """Store the query's rows in their order, numbered from 1. Return their number."""

    def _find_unfit(self, snapshot: PinnedTable) -> Unfit:
        """Return the columns with a value that is none of the column's Arrow type, if that is known without reading."""
        return {}

    @abstractmethod
    def _read(self, snapshot: PinnedTable, rows: int, unfit: Unfit) -> Iterator[pa.RecordBatch]:
        """Yield all rows, with their numbers as the last column.

        Values that Arrow does not have are NULL; their columns are in `unfit`, or are added to it.
        """

    @abstractmethod
    def _make_places(self, table: PinnedTable) -> None:
        """Create an empty table of the numbers of blocks, from 0, and the places of their rows."""

    @abstractmethod
    def _encode_places(self, places: Ints) -> pa.Array:
        """Return each row of the array, the places of a block, as one value of that table."""

    @abstractmethod
    def _write_in_order(self, tables: RowTables) -> None:
        """Create the ordered table of the snapshot's rows and their places."""

    @abstractmethod
    def _finish(self, table: PinnedTable, rows: int) -> Sequence[object]:
        """Let ranges of the rows be read. Return sums over all rows with their places, of which the digest is made."""

    # Steps -----------------------------------------------------------------------------------------------

    def _order(self, rows: int, unfit: Unfit, seed: int, split: Split | None) -> ValidationRows | None:
        """Copy the rows of the snapshot in the order determined by them, the seed and the split.

        Return the validation rows, None without a split.
        """
        snapshot, _, places = self._tables
        schema = self.schema.append(pa.field(snapshot.key, pa.int64()))
        self._make_places(places)
        batches = pa.RecordBatchReader.from_batches(schema, self._read(snapshot, rows, unfit))
        with (
            shuffled_keys(batches, seed, self.folder, snapshot.key, split) as keys,
            self.source.transaction(),
        ):
            of_rows = find_places(keys.reader, rows)
            self.source.append(places.name, [BLOCK, PLACES], self._place_batches(of_rows))
        self._write_in_order(self._tables)
        self._drop(places, snapshot)
        return keys.validation

    def _place_batches(self, places: Ints) -> Iterator[pa.RecordBatch]:
        """Yield the numbers of the blocks, and their places."""
        for first in range(0, len(places), _BLOCKS):
            part = places[first : first + _BLOCKS]
            numbers = pa.array(np.arange(first, first + len(part)))
            yield pa.RecordBatch.from_arrays([numbers, self._encode_places(part)], names=[BLOCK, PLACES])

    def _digest(self, sums: Sequence[object]) -> str:
        """Return the digest of the types and of all rows with their places, given the sums over them."""
        facts = (str(self.schema), *map(str, sums))
        return hashlib.blake2b("\n".join(facts).encode(), digest_size=32).hexdigest()

    def _drop(self, *tables: PinnedTable) -> None:
        self.source.execute(f"DROP TABLE IF EXISTS {', '.join(table.name for table in tables)}")

    def _comment(self) -> str:
        """Return the text that names the owner of a table."""
        return pinned_tables.comment(self.folder)
