"""The job folder of a job that a command or a script waits for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from edl.errors import SQLFlowError
from edl.jobs import job_folder as jobs


@contextlib.contextmanager
def job_folder(kind: jobs.Kind, statement: str = "") -> Iterator[jobs.JobFolder]:
    """A job folder, which is gone at the end; the logs of workers stay when the job has failed."""
    job = jobs.create(kind, statement)
    kept = False
    try:
        yield job
    except SQLFlowError as error:
        kept = any(job.logs.iterdir())
        if job.status().state not in ("failed", "cancelled"):  # its supervisor has not said so
            job.end("failed", error.message)
        raise
    finally:
        if not kept:
            job.remove()
