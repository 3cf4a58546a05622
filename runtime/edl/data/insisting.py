"""Work on a data source that is done again when the connection was lost under it, or somebody else was in its way."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from edl.data.source import ConflictError

R = TypeVar("R")

ATTEMPTS = 5
PAUSES = (0.0, 0.2, 1.0, 3.0)  # seconds after each attempt


def insisting(work: Callable[[int], R], *, pause: Callable[[float], object] = time.sleep) -> R:
    """What the work comes to that may be repeated; it is told the number of its attempt."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return work(attempt)
        except ConflictError:
            pause(PAUSES[attempt])
    return work(ATTEMPTS - 1)
