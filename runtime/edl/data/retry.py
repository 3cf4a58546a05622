"""Retries of work on a data source after a lost connection, a conflict or an outage.

A pod that has reached its data source waits for it as long as for the API server: the work of the job is in its
processes and on their disks. One that never did gives up soon, because it may have no way there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from typing import TypeVar

from edl.data.source import ConflictError, UnreachableError
from edl.reachability import SOURCE, Peer, outage_secs

R = TypeVar("R")

PAUSES = (0.0, 0.2, 1.0, 3.0)  # seconds, after each lost connection or conflict
AWAY = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)  # seconds, while the source is unreachable

reached = threading.Event()  # this process has read its data source, or written into it


def insisting(
    work: Callable[[int], R], *, keeps: bool = False, pause: Callable[[float], object] = time.sleep
) -> R:
    """Return the result of idempotent work, which gets the number of its attempt.

    `keeps`: it stores the result of a job, which must have reached the source before, though this process may not have.
    """
    conflicts, attempt = iter(PAUSES), 0
    away = _pauses(outage_secs() if keeps or reached.is_set() else 0.0)
    source: Peer | None = None  # after an outage
    while True:
        try:
            result = work(attempt)
        except (ConflictError, UnreachableError) as error:
            seconds = next(conflicts if isinstance(error, ConflictError) else away, None)
            if isinstance(error, UnreachableError):
                source = source or Peer(SOURCE, "")
                source.on_failure(partial(str, error.message))
            if seconds is None:
                if source is not None:
                    source.on_gone()
                raise
            pause(seconds)
            attempt += 1
            continue
        reached.set()
        if source is not None:
            source.on_answer()
        return result


def _pauses(secs: float) -> Iterator[float]:
    """Yield the pauses of an outage of so many seconds, at least the ones in AWAY."""
    yield from AWAY
    yield from repeat(AWAY[-1], max(0, round((secs - sum(AWAY)) / AWAY[-1])))
