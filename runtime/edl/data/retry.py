"""Work on a data source that is done again when the connection was lost under it, or the source is away for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from edl.data.source import ConflictError, UnreachableError

R = TypeVar("R")

PAUSES = (0.0, 0.2, 1.0, 3.0)  # seconds, each time the connection was lost or somebody was in the way
AWAY = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)  # each time the source could not be reached


def insisting(work: Callable[[int], R], *, pause: Callable[[float], object] = time.sleep) -> R:
    """What the work comes to that may be repeated; it is told the number of its attempt."""
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
