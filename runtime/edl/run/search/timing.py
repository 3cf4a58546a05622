"""Time of a search: its limit counts from the beginning of the statement, and includes what comes after the trials.

At the end of the limit the trials are followed by the choice, the refits, the importances and the storing of the model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

# for the importances of all models together: the lesser of so many seconds and such a share of the time limit
SECONDS, SHARE = 5.0, 0.05
STORING, STORING_SHARE = 1.0, 0.02  # seconds and share of the limit for choice and storing
RECORDS = 2  # the choice and the storing read as much as so many records of a trial
# of the time that is left when the search begins, for all that comes after trials and refits
MOST_ENDING = 0.25


class SearchTime:
    """Time of a search. limit: in seconds, 0 is none. passed: seconds since the beginning of the statement."""

    def __init__(self, limit: float, passed: float = 0.0, now: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self.given = max(0.0, limit - max(0.0, passed)) if limit else math.inf  # seconds of this process
        self.recording = 0.0  # seconds of the longest record of a trial
        self._now = now
        self._until = now() + self.given

    @property
    def seconds_left(self) -> float:
        """Remaining seconds, negative after the limit; infinite without one."""
        return self._until - self._now()

    @property
    def seconds_to_store(self) -> float:
        """Seconds that the choice among the models and their storing will probably take."""
        usual = STORING + STORING_SHARE * self.limit + RECORDS * self.recording
        return min(usual, MOST_ENDING * self.given) if self.limit else 0.0

    @property
    def seconds_to_explain(self) -> float:
        """Seconds that the importances may take."""
        if not self.limit:
            return SECONDS
        return min(SECONDS, SHARE * self.limit, MOST_ENDING * self.given / 2)

    @property
    def seconds_before_end(self) -> float:
        """Remaining seconds of the trials and of the refits."""
        return self.seconds_left - (self.seconds_to_store + self.seconds_to_explain if self.limit else 0.0)

    @property
    def left_to_explain(self) -> float:
        """Seconds for the importances now; none if the model must be stored."""
        return max(0.0, min(self.seconds_to_explain, self.seconds_left - self.seconds_to_store))
