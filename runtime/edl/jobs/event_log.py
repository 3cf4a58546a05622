"""Events of a distributed job for its clients: `cluster/events.jsonl`, one event a line, from its start to its end.

The present master writes; clients read from the start, at any time. A killed master may leave a partial line: the
next one begins with a new line, and readers skip lines that are no event. A repeated end (by a master that died
right after it) counts once, since readers stop at the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from edl.files import replace_file
from edl.jobs.events import JobEvent
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome

Event = JobEvent | Outcome | Failed
_ENDS = (Outcome, Failed)

_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def decode_event(line: bytes | str) -> Event | None:
    """Return the event of a line, or None if it has none."""
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


class EventLog:
    """Writer that appends events to the file; each is in the file when `write` returns."""

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
    """Writer of events to a stream, each as a line among others."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, event: Event) -> None:
        self._stream.write(msgspec.json.encode(event) + b"\n")
        self._stream.flush()


class EventReader:
    """Incremental reader of the file. The file may appear later, and may vanish while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._rest = b""

    def read(self) -> Iterator[Event]:
        """Return the events since the last call."""
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
        while piece := os.read(self._file, 1 << 16):
            *lines, self._rest = (self._rest + piece).split(b"\n")
            yield from filter(None, map(decode_event, lines))

    @property
    def is_replaced(self) -> bool:
        """True if another file has taken the place of the file being read, as when a job is resumed."""
        if self._file is None:
            return False
        try:
            return not os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> EventReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_end(path: Path) -> Outcome | Failed | None:
    """Return the event that ended the job, or None."""
    with EventReader(path) as reader:
        return next((event for event in reader.read() if isinstance(event, Outcome | Failed)), None)


def record_end(path: Path, outcome: Outcome) -> None:
    """Write the outcome of a job, unless its end is there."""
    if read_end(path) is None:
        with EventLog(path) as events:
            events.write(outcome)


def forget_end(path: Path) -> None:
    """Remove the event that ended the job, because the job continues. Nothing may write at the same time."""
    if read_end(path) is not None:
        lines = path.read_bytes().splitlines(keepends=True)
        replace_file(path, b"".join(line for line in lines if not isinstance(decode_event(line), _ENDS)))
