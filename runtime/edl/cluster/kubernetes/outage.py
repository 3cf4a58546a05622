"""Time in which the API server does not answer: when to tell of it, and how long a refusal may be a part of it.

A restarted API server answers 403 until it has read the Roles, and 401 until it has read the keys of tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TELL_SECS = 10.0  # without an answer until that is told
AGAIN_SECS = 60.0  # until it is told again
REFUSAL_SECS = 60.0  # in which refusals of what was allowed before are a part of an outage
LACKING_SECS = 10.0  # in which a right that was never there may still arrive


class Outage:
    """Present outage, if any. Not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._told: float | None = None
        self._refused: float | None = None  # time of the first of the last refusals in a row

    @property
    def secs(self) -> float:
        """Seconds since the first request without an answer; 0 without an outage."""
        return 0.0 if self._since is None else self._clock() - self._since

    @property
    def refused_secs(self) -> float:
        """Seconds since the first refusal behind the last other failure; 0 without one."""
        return 0.0 if self._refused is None else self._clock() - self._refused

    def on_failure(self, began: float, *, refused: bool = False) -> bool:
        """Record a request without an answer that was sent at `began`, or that was `refused`. Return True if the outage
        is to be told now.
        """
        now = self._clock()
        self._since = began if self._since is None else self._since
        self._refused = (began if self._refused is None else self._refused) if refused else None
        is_due = now - self._since >= TELL_SECS if self._told is None else now - self._told >= AGAIN_SECS
        if is_due:
            self._told = now
        return is_due

    def on_answer(self) -> float:
        """Record an answer; return the seconds of the outage that it ends, 0 if that was not told."""
        secs = self.secs if self._told is not None else 0.0
        self._since = self._told = self._refused = None
        return secs
