"""Estimates of the rows of a query, and of what pinning them costs: for plans, which promise no figure."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from edl.data.source import PinningRates, RowEstimate

if TYPE_CHECKING:
    import pyarrow as pa

PROBE_SECS = 0.15  # that a question to a database may take
SAMPLED_ROWS = 1000  # for the size of a row
ROWS_IN_MEMORY = 1 << 30  # bytes that are kept in memory while their order is found; more are in a file
PLACE_BYTES = 60  # of memory for the order of a row, beside it


class PinningCost(NamedTuple):
    """Seconds and bytes of memory of this process that pinning rows takes. seconds: None if that is not known."""

    seconds: float | None
    memory: float


IN_FILE = PinningRates(copy=5e-9, order=12e-9)  # beside reading the rows


class RowMeter:
    """Counter of rows that are read for another purpose, and of the time of reading them."""

    def __init__(self) -> None:
        self._rows = 0
        self._size = 0
        self._seconds = 0.0

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        began = time.monotonic()
        for batch in batches:
            self._seconds += time.monotonic() - began
            self._rows += batch.num_rows
            self._size += batch.nbytes
            yield batch
            began = time.monotonic()

    def estimate(self) -> RowEstimate:
        return RowEstimate(self._rows, self._size, self._seconds, is_counted=True)


def pinning_cost(estimate: RowEstimate, rates: PinningRates | None, *, shuffled: bool) -> PinningCost:
    """Return what pinning the rows costs. rates: of the source, None if they are not known."""
    is_here = rates is None or not rates.in_server
    kept = min(estimate.size, ROWS_IN_MEMORY) if is_here else 0.0
    memory = PLACE_BYTES * estimate.rows + kept if shuffled else 0.0
    if rates is None:
        return PinningCost(None, memory)
    seconds = estimate.size * (rates.copy + rates.order * shuffled)
    if rates.in_server:  # the rates have the reading
        return PinningCost(seconds, memory)
    return PinningCost(None if estimate.seconds is None else estimate.seconds + seconds, memory)


def row_size(values: Iterable[object]) -> int:
    """Return the bytes of a row in Arrow. values: texts and bytes, or others, which take 8 bytes."""
    return sum(len(value) + 4 if isinstance(value, str | bytes) else 8 for value in values)
