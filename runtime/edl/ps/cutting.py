"""Cuts of one server under way: copied at once, written by a thread, one after another."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from edl.ps import shards
from edl.ps.messages import Progress, Shard, Version
from edl.ps.term import Term, TermCopy
from edl.rpc.channel import AwayError

_REMEMBERED = 8  # cuts


class Taken(NamedTuple):
    """A cut that was copied. shard: its file, when it is written."""

    version: Version
    progress: tuple[Progress, ...]
    shard: Future[Shard]

    def written(self, seconds: float) -> Shard:
        """Wait for the file. AwayError: it takes longer."""
        try:
            return self.shard.result(seconds)
        except TimeoutError:
            raise AwayError("the checkpoint is still being written") from None


class Cutter:
    """Takes cuts of a term."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._taking = threading.Lock()
        self._lock = threading.Lock()  # of what was taken; who looks does not wait for a copy
        self._writer = ThreadPoolExecutor(1, "edl-cut")
        self._taken: dict[str, Taken] = {}

    def take(self, folder: str, *, told: bool = True) -> Taken:
        """Copy everything now, and have it written; the same when it was taken already. told: see `Book.cut`."""
        with self._taking:
            if (known := self._taken.get(folder)) is not None:
                return known
            copied = self._term.copied(told=told)
            shard = self._writer.submit(_write, Path(folder), copied)
            taken = Taken(copied.version, copied.page.progress, shard)
            with self._lock:
                self._taken[folder] = taken
                while len(self._taken) > _REMEMBERED:
                    del self._taken[next(iter(self._taken))]
            return taken

    def written(self) -> dict[str, Shard]:
        """The last cuts that are on disk, by folder."""
        with self._lock:
            done = {folder: taken.shard for folder, taken in self._taken.items() if taken.shard.done()}
        return {folder: shard.result() for folder, shard in done.items() if not shard.cancelled()}

    def close(self) -> None:
        """Cuts that wait are not written any more."""
        self._writer.shutdown(wait=False, cancel_futures=True)


def _write(folder: Path, copied: TermCopy) -> Shard:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return shards.write(folder, copied)
    except OSError as error:  # training goes on
        print(f"the checkpoint {folder.name} could not be written: {error}", file=sys.stderr, flush=True)
        name = f"server-{copied.arranged.index}.safetensors"
        return Shard(copied.arranged.index, name, error=str(error))
