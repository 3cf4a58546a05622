"""Sources without an end: ranges of offsets become the rows of a step, and are taken when the step is.

    rank 0: offsets of the model, latest offsets ─▶ ranges [m, n) of a step ─▶ all workers ─▶ own part ─▶ records

The offsets are a part of the state that all workers hold alike. So a record is in the model once, however often workers
are lost, and a checkpoint has the offsets of its model.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from edl.errors import JobError
from edl.jobs.script_run import NamedRows

if TYPE_CHECKING:
    from edl.extensions.elastic.session import ElasticSession

POLL_SECS = 0.05  # between two looks at the latest offsets
# Seconds that a step may wait for records; a member that waits longer for others gives them up.
LONGEST = 30.0

Key = str | int
Range = tuple[Key, int, int]  # partition, and its offsets [m, n)


class Source(Protocol):
    """Records in partitions. The records of a partition have the offsets 0, 1, 2, … and never change.

    Every worker has a source of its own, and all see the same records.
    """

    def partitions(self) -> Sequence[Key]:
        """Return the partitions there are now."""
        ...

    def latest(self, partition: Key) -> int:
        """Return the offset after the last record that can be read now."""
        ...

    def read(self, partition: Key, offset: int, rows: int) -> Any:
        """Return the records of the offsets [offset, offset + rows): a list, or a `pyarrow.Table`."""
        ...


class StreamCursor:
    """Position in a stream: the `offsets` of the partitions, up to which the state has the records."""

    def __init__(self, name: str, rows: NamedRows, micro_batch: int, start: Mapping[Key, int]) -> None:
        self.name = name
        self.rows = rows
        self.micro_batch = micro_batch
        self.offsets = dict(start)
        self.closed = False

    def advance(self, end: Mapping[Key, int]) -> None:
        self.offsets.update(end)

    def position(self) -> Any:
        return self.offsets

    def load(self, position: Any) -> None:
        self.offsets = dict(position)


class Stream:
    """Records of one worker. The iteration has no end."""

    def __init__(
        self, session: ElasticSession, cursor: StreamCursor, source: Source, wait_secs: float
    ) -> None:
        self._session = session
        self._cursor = cursor
        self._source = source
        self._wait_secs = wait_secs

    @property
    def offsets(self) -> dict[Key, int]:
        """Offsets up to which the model has the records, by partition."""
        return dict(self._cursor.offsets)

    def state_dict(self) -> dict[str, Any]:
        """Return the offsets, for a checkpoint that the script itself writes."""
        return {"offsets": self.offsets}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Begin at the offsets of an earlier job, in the place of `start`. Call it before the function of `run`."""
        self._session.begin_at(self._cursor, dict(state["offsets"]))

    def __iter__(self) -> Iterator[Any]:
        steps = self._session.steps
        for ranges, low, high in steps.lease_steps(self._cursor, self._next_ranges):
            yield self._read(cut(ranges, low, high))
            if not self._session.has_optimizer:
                steps.commit()

    def _next_ranges(self) -> list[Range]:
        """Wait for the records of a step; return fewer after some time, perhaps none."""
        size, offsets = self._cursor.rows.batch_size, self._cursor.offsets
        end = time.monotonic() + self._wait_secs
        while True:
            latest_offsets = {
                partition: self._source.latest(partition) for partition in self._source.partitions()
            }
            ranges = divide_records(
                {
                    partition: (offsets.get(partition, 0), latest)
                    for partition, latest in latest_offsets.items()
                },
                size,
            )
            if sum(after - first for _, first, after in ranges) == size or time.monotonic() >= end:
                return ranges
            threading.Event().wait(POLL_SECS)

    def _read(self, ranges: Sequence[Range]) -> Any:
        parts = []
        for partition, first, after in ranges:
            part = self._source.read(partition, first, after - first)
            if len(part) != after - first:
                raise JobError(
                    f"the partition {partition!r} of the stream {self._cursor.name!r} has {len(part)} records at the "
                    f"offsets [{first:,}, {after:,})",
                    hint="a stream has a record at each offset: records must not be deleted before they are read",
                )
            parts.append(part)
        if isinstance(parts[0], list):
            return [record for part in parts for record in part]
        import pyarrow as pa

        return pa.concat_tables(parts)


def divide_records(available: Mapping[Key, tuple[int, int]], size: int) -> list[Range]:
    """Return ranges of at most `size` records in all, of each partition alike as far as it has them.

    `available` has the first offset and that after the last one of each partition.
    """
    by_rest = sorted(available.items(), key=lambda item: (item[1][1] - item[1][0], str(item[0])))
    ranges = []
    for number, (partition, (first, latest)) in enumerate(by_rest):
        share = -(-size // (len(by_rest) - number))
        taken = max(0, min(latest - first, share))
        size -= taken
        if taken:
            ranges.append((partition, first, first + taken))
    return ranges


def cut(ranges: Sequence[Range], low: int, high: int) -> list[Range]:
    """Return the records [low, high) of the ranges, counted from the first one of all."""
    parts, at = [], 0
    for partition, first, after in ranges:
        begin, end = max(low - at, 0), min(high - at, after - first)
        if begin < end:
            parts.append((partition, first + begin, first + end))
        at += after - first
    return parts
