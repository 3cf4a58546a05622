"""Retries of work on a data source after a lost connection, a conflict or an outage."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from edl.data.source import ConflictError, UnreachableError
from edl.reachability import Peer

R = TypeVar("R")

PAUSES = (0.0, 0.2, 1.0, 3.0)  # seconds, after each lost connection or conflict
AWAY = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)  # seconds, while the source is unreachable


def insisting(work: Callable[[int], R], *, pause: Callable[[float], object] = time.sleep) -> R:
    """Return the result of idempotent work, which gets the number of its attempt."""
    conflicts, away, attempt = iter(PAUSES), iter(AWAY), 0
    source: Peer | None = None  # after an outage
    while True:
        try:
            result = work(attempt)
        except (ConflictError, UnreachableError) as error:
            seconds = next(conflicts if isinstance(error, ConflictError) else away, None)
            if isinstance(error, UnreachableError):
                source = source or Peer("the data source", "")
                source.on_failure(partial(str, error.message))
            if seconds is None:
                if source is not None:
                    source.on_gone()
                raise
            pause(seconds)
            attempt += 1
            continue
        if source is not None:
            source.on_answer()
        return result
