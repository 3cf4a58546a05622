"""Record of a job without a master, in the files that a master would write: its curve as events, its progress as a
snapshot. Other processes read them to show the job; it can do without, so a full disk ends the record alone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventLog
from edl.jobs.events import EpochEnd, ProcessEvent, Progress, TrialEnd
from edl.jobs.snapshot import Snapshot

INTERVAL = 1.0  # seconds between two snapshots


class JobRecorder:
    """Observer that records events in the job folder; a context manager that closes the record."""

    def __init__(self, folder: ClusterFolder, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._log: EventLog | None = None
        self._started = _now()
        self._recorded_at = -INTERVAL
        self._waiting: Progress | None = None  # later than the last snapshot

    def __call__(self, event: ProcessEvent) -> None:
        """Record the event."""
        with contextlib.suppress(OSError):
            if isinstance(event, EpochEnd | TrialEnd):
                self._log = self._log or EventLog(self._folder.events)
                self._log.write(event)
            else:
                self._progress(event)

    def _progress(self, event: Progress) -> None:
        self._waiting = event
        if (now := self._clock()) - self._recorded_at >= INTERVAL:
            self._recorded_at = now
            self._write()

    def _write(self) -> None:
        event, self._waiting = self._waiting, None
        if event is None:
            return
        self._folder.path.mkdir(mode=0o700, exist_ok=True)
        Snapshot(
            self._started,
            _now(),
            epoch=event.epoch,
            epochs=event.epochs,
            rows=event.rows,
            step=event.step,
            loss=event.loss,
            rate=event.rows_per_second,
            phase=event.phase,
            total=event.total,
            seconds=event.seconds,
            limit=event.limit,
        ).write(self._folder.snapshot)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._write()
        if self._log is not None:
            self._log.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
