"""Notice to a worker that it has to leave: from SIGTERM to the end of the grace period."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterable

from edl.cluster import LEAVE_GRACE

LeaveHook = Callable[[float], object]


class LeaveNotice(threading.Event):
    """Event that is set when this worker has to leave; it counts the seconds from then on."""

    def __init__(self) -> None:
        super().__init__()
        self._end = 0.0

    def set(self) -> None:
        """Begin the grace period. It does not begin again."""
        if not self.is_set():
            self._end = time.monotonic() + LEAVE_GRACE
        super().set()

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end of the grace period, at least 0; None before the notice."""
        return max(0.0, self._end - time.monotonic()) if self.is_set() else None


def call_hooks(hooks: Iterable[LeaveHook], notice: LeaveNotice) -> None:
    """Call the hooks with the seconds left, after a notice, when this worker has left its group.

    What one raises is printed: the job has nothing to do with it any more.
    """
    for hook in hooks if notice.is_set() else ():
        try:
            hook(notice.seconds_left or 0.0)
        except Exception:
            traceback.print_exc()
