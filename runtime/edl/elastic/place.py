"""Place of this process: a worker of a job of `edl run`, or a process of its own. Nothing is imported for it here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from edl.cluster import Instance


@dataclass
class Worker:
    """Worker of a job. `at_end` are called when its script has ended, in any way."""

    job: Path
    instance: Instance
    at_end: list[Callable[[], None]] = field(default_factory=list)


_worker: Worker | None = None


def enter(job: Path, instance: Instance) -> None:
    """Record that this process is a worker of the job."""
    global _worker
    _worker = Worker(job, instance)


def leave() -> None:
    """End what the worker has begun."""
    while _worker is not None and _worker.at_end:
        _worker.at_end.pop()()


def worker() -> Worker | None:
    """Return the worker that this process is, or None."""
    return _worker
