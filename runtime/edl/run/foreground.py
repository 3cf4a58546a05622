"""Job folder of a foreground job of a command or a script."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from edl.errors import SQLFlowError
from edl.jobs import job_folder as jobs


@contextlib.contextmanager
def job_folder(kind: jobs.Kind, statement: str = "") -> Iterator[jobs.JobFolder]:
    """Create a job folder inside the context and remove it at the end; a failed job's folder stays if it has logs."""
    job = jobs.create(kind, statement)
    with ending(job):
        yield job


@contextlib.contextmanager
def ending(job: jobs.JobFolder) -> Iterator[None]:
    """Remove the job folder at the end of the context; that of a failed job stays if it has logs."""
    kept = False
    try:
        yield
    except SQLFlowError as error:
        kept = any(job.logs.iterdir())
        # Otherwise its supervisor has recorded the end.
        if job.status().state not in ("failed", "cancelled", "died", "paused"):
            job.end("failed", error.message)
        if kept and job.can_resume:
            rest = f"`edl train --resume {job.path}` continues the training"
            error.hint = f"{error.hint}; {rest}" if error.hint else rest
        raise
    finally:
        if not kept:
            job.remove()
