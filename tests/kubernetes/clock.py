"""The time of the double: that of the machine, until a test takes the clock over."""

from __future__ import annotations

import datetime as dt
import threading
import time


class Clock:
    """Who waits holds `changed`, which is also told when a test moves the clock."""

    def __init__(self, changed: threading.Condition) -> None:
        self.changed = changed
        self._set_to: float | None = None

    def now(self) -> float:
        return time.time() if self._set_to is None else self._set_to

    def move(self, seconds: float) -> None:
        """Forward; from now on it goes only when it is moved."""
        with self.changed:
            self._set_to = self.now() + max(seconds, 0)
            self.changed.notify_all()

    def wait(self, until: float) -> None:
        """For a change, at most until then. `changed` is held."""
        left = until - self.now()
        if left > 0:
            self.changed.wait(left if self._set_to is None and left < threading.TIMEOUT_MAX else None)

    def stamp(self, later: float = 0) -> str:
        moment = dt.datetime.fromtimestamp(self.now() + later, dt.UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(stamp: str) -> float:
    """What a stamp says."""
    return dt.datetime.fromisoformat(stamp).timestamp()
