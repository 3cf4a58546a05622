"""What a client is told of a distributed job: `cluster/events.jsonl`, one event a line, from its start to its end.

The master writes, whichever master lives; clients read from the start, at any time. A master that is killed may leave
half a line behind: the next one begins with a line of its own, and a reader passes over what is no event. What is
written twice (the end, by a master that died right after it) counts once: a reader stops at the first end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from edl.tasks.events import EpochEnd, Progress, Tally
from edl.tasks.failed import Failed
from edl.tasks.outcome import Outcome

Event = Progress | EpochEnd | Tally | Outcome | Failed

_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def decode_event(line: bytes | str) -> Event | None:
    """None: the line is no event."""
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError:
        return None


class EventLog:
    """Appends events to the file; each is in it when `write` returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")

    def write(self, event: Event) -> None:
        os.write(self._file, msgspec.json.encode(event) + b"\n")

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EventStream:
    """Writes events to a stream, each as a line of its own among others."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, event: Event) -> None:
        self._stream.write(msgspec.json.encode(event) + b"\n")
        self._stream.flush()


class EventReader:
    """Reads the file from its start, as far as it has got. The file may come later, and may go while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._rest = b""

    def read(self) -> Iterator[Event]:
        """The events since the last call."""
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
        while piece := os.read(self._file, 1 << 16):
            *lines, self._rest = (self._rest + piece).split(b"\n")
            yield from filter(None, map(decode_event, lines))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> EventReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_end(path: Path) -> Outcome | Failed | None:
    """The event that ended the job; None when there is none."""
    with EventReader(path) as reader:
        return next((event for event in reader.read() if isinstance(event, Outcome | Failed)), None)
