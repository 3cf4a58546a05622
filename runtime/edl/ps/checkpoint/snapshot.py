"""Checkpoints of one server in progress: their content belongs to one moment, and a thread writes one after another.

The caller chooses whether a shard is written to disk or replicated in the memory of the next server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from edl.logs import log
from edl.ps.checkpoint import shard_file
from edl.ps.checkpoint.content import Progress, Shard, Version
from edl.ps.replica import Replica, ReplicaSnapshot
from edl.ps.store import StoreMark
from edl.rpc.channel import AwayError

_REMEMBERED = 8  # checkpoints

# Writes the checkpoint of that name; raises OSError or SQLFlowError.
Write = Callable[[str, ReplicaSnapshot], Shard]


class Taken(NamedTuple):
    """Checkpoint that was begun. `shard` is the result of writing this server's part."""

    version: Version
    progress: tuple[Progress, ...]
    shard: Future[Shard]

    def wait_for_shard(self, seconds: float) -> Shard:
        """Wait for the shard to be written. Raises AwayError if it takes longer."""
        try:
            return self.shard.result(seconds)
        except TimeoutError:
            raise AwayError("the checkpoint is still being written") from None


class CheckpointWriter:
    """Takes the checkpoints of a replica."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._last: StoreMark | None = None  # the last shard to which changes can be added
        self._taking = threading.Lock()
        self._lock = threading.Lock()  # guards `_taken`; readers must not wait for a copy
        self._writer = ThreadPoolExecutor(1, "edl-checkpoint")
        self._taken: dict[str, Taken] = {}

    def take(self, name: str, write: Write, *, reported: bool = True, changes: bool = False) -> Taken:
        """Take the present content, and write it in the background; return the known one if it was taken already.

        See `PushLog.snapshot` for `reported`. `changes`: what was written before may be added to.
        """
        with self._taking:
            if (earlier := self._taken.get(name)) is not None:
                return earlier
            after = self._last if changes else None
            snapshot = self._replica.cut(name, reported=reported, after=after)
            shard = self._writer.submit(self._write, write, name, snapshot, changes)
            taken = Taken(snapshot.version, snapshot.push_log.progress, shard)
            with self._lock:
                self._taken[name] = taken
                while len(self._taken) > _REMEMBERED:
                    del self._taken[next(iter(self._taken))]
            return taken

    def written_shards(self) -> dict[str, Shard]:
        """Return the written shards of the last checkpoints, by name of the checkpoint."""
        with self._lock:
            done = {name: taken.shard for name, taken in self._taken.items() if taken.shard.done()}
        return {name: shard.result() for name, shard in done.items() if not shard.cancelled()}

    def close(self) -> None:
        """Stop; pending checkpoints are not written."""
        self._writer.shutdown(wait=False, cancel_futures=True)

    def _write(self, write: Write, name: str, snapshot: ReplicaSnapshot, changes: bool) -> Shard:
        try:
            shard = write(name, snapshot)
        except Exception as error:  # training continues without it
            why = str(error) or type(error).__name__
            log(f"the checkpoint {name} could not be written: {why}")
            index = snapshot.arranged.index
            return Shard(index, shard_file.name_of(index), error=why)
        finally:
            snapshot.store.close()
        if changes:
            steps = tuple(table.steps for table in snapshot.store.tables)
            self._last = StoreMark(name, shard, steps, snapshot.store.changed_rows if shard.earlier else 0)
            self._replica.require_store().forget(self._last)
        return shard
