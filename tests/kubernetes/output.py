"""What one run of a container wrote: in a file, with the times at which it came."""

from __future__ import annotations

import bisect
import datetime as dt
import threading
from collections.abc import Callable, Iterator
from pathlib import Path


class Output:
    """Written by one thread, followed by any. `changed` is told of every piece, and of the end."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self.path, self._now = path, now
        self.changed = threading.Condition()
        self._file = path.open("wb", buffering=0)
        self._starts: list[int] = []  # of the pieces, in bytes
        self._times: list[float] = []
        self.size, self.has_ended = 0, False

    def add(self, piece: bytes) -> None:
        with self.changed:
            self._starts.append(self.size)
            self._times.append(round(self._now(), 6))  # as it is told
            self._file.write(piece)
            self.size += len(piece)
            self.changed.notify_all()

    def end(self) -> None:
        with self.changed:
            self.has_ended = True
            self._file.close()
            self.changed.notify_all()

    def read(self, start: int = 0) -> bytes:
        """All that is there from that byte on."""
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read()

    def follow(self, start: int) -> Iterator[bytes]:
        """From that byte on, as it comes, to its end."""
        while True:
            with self.changed:
                while self.size <= start and not self.has_ended:
                    self.changed.wait()
            piece = self.read(start)
            if not piece:
                return
            start += len(piece)
            yield piece

    def lines(self) -> list[tuple[float, bytes]]:
        """Those that are there, and when each began."""
        found, start = [], 0
        for line in self.read().splitlines(keepends=True):
            found.append((self.time(start), line))
            start += len(line)
        return found

    def time(self, byte: int) -> float:
        return self._times[bisect.bisect_right(self._starts, byte) - 1]


def stamped(moment: float, line: bytes) -> bytes:
    """In nanoseconds, as far as the double knows them."""
    seconds = dt.datetime.fromtimestamp(moment, dt.UTC)
    return seconds.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode() + line
