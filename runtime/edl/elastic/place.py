"""Place of this process: a worker of a job of `edl run`, or a process of its own. Nothing is imported for it here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from edl.cluster import Instance
from edl.errors import SQLFlowError


@dataclass
class ElasticWorker:
    """Worker of a job. `at_end` are called with the exit code of its script, and our error that has ended it."""

    job: Path
    instance: Instance
    at_end: list[Callable[[int, SQLFlowError | None], None]] = field(default_factory=list)


_worker: ElasticWorker | None = None


def enter(job: Path, instance: Instance) -> None:
    """Record that this process is a worker of the job."""
    global _worker
    _worker = ElasticWorker(job, instance)


def leave(code: int, error: SQLFlowError | None = None) -> None:
    """End what the worker has begun, at the end of its script."""
    while _worker is not None and _worker.at_end:
        _worker.at_end.pop()(code, error)


def worker() -> ElasticWorker | None:
    """Return the worker that this process is, or None."""
    return _worker
