"""Retries of work on a data source after a lost connection, a conflict or an outage."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from edl.data.source import ConflictError, UnreachableError

R = TypeVar("R")

PAUSES = (0.0, 0.2, 1.0, 3.0)  # seconds, after each lost connection or conflict
AWAY = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)  # seconds, while the source is unreachable


def insisting(work: Callable[[int], R], *, pause: Callable[[float], object] = time.sleep) -> R:
    """Return the result of idempotent work, which gets the number of its attempt."""
    conflicts, away, attempt = iter(PAUSES), iter(AWAY), 0
    while True:
        try:
            return work(attempt)
        except (ConflictError, UnreachableError) as error:
            seconds = next(conflicts if isinstance(error, ConflictError) else away, None)
            if seconds is None:
                raise
            pause(seconds)
            attempt += 1
