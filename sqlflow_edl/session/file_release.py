"""File of a data source that one process alone can have open: released during a training, and opened again after it.

The rows of a training are pinned before it begins, so nothing is read from the file until its model is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from edl.data import Source
from edl.data.source import LockedError, ReleasableSource
from sqlflow_edl.session.observer import Observer

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts, doubled each time
QUIET_SECS, NOTE_SECS = (
    5.0,
    60.0,
)  # until the first note on a file that another process has open, and between notes
PATIENCE = 24 * 3600.0  # seconds of waiting for the file


class FileRelease:
    """Release of the file of one source. clock, pause: functions that tests replace."""

    def __init__(
        self,
        source: Source,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._source = source
        self._is_released = False
        self._clock, self._pause = clock, pause

    def release(self) -> None:
        """Close the file, unless the session has a state that would be lost."""
        if isinstance(self._source, ReleasableSource):
            self._source.release()
            self._is_released = True

    def reopen(self, observer: Observer) -> None:
        """Open a released file again, when no other process has it open.

        Raises LockedError if one still has it after PATIENCE, and SourceError for other reasons.
        """
        if not self._is_released or not isinstance(self._source, ReleasableSource):
            return
        began = self._clock()
        seconds, next_note = FIRST_PAUSE, began + QUIET_SECS
        while True:
            try:
                self._source.reopen()
                break
            except LockedError as error:
                now = self._clock()
                if now - began >= PATIENCE:
                    raise
                if now >= next_note:
                    observer.note(f"waiting for the database: {error.message}")
                    next_note = now + NOTE_SECS
            self._pause(seconds)
            seconds = min(2 * seconds, LONGEST_PAUSE)
        self._is_released = False
