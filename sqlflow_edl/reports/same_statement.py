"""Other jobs of the statement that a job begins: nothing is computed twice by mistake."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from edl.errors import SpecError
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.models.pending import read_intent


def describe_jobs(job: JobFolder, source: str) -> Iterator[str]:
    """Yield a note for each earlier job of the statement of `job` on the data source with this URL that still runs, or
    could be resumed instead.
    """
    status_here = job.status()
    for other in job_folder.jobs() if status_here.statement else ():
        if other.id == job.id:
            continue
        with contextlib.suppress(SpecError, OSError):  # of another version, or removed meanwhile
            status = other.status()
            if (status.kind, status.statement) == (status_here.kind, status_here.statement) and _is_of(
                other, source
            ):
                yield from _describe(other, status)


def _is_of(job: JobFolder, source: str) -> bool:
    intent = read_intent(job.path)
    return intent is not None and intent.source == source


def _describe(job: JobFolder, status: job_folder.Status) -> Iterator[str]:
    if job.can_resume:
        yield f"job {job.id} of this statement ended early: `sqlflow resume {job.id}` continues that one"
    elif status.state != "running" or not status.is_alive:
        return
    elif status.place or ClusterFolder(job.path).process("supervisor") is not None:
        yield f"job {job.id} runs this statement, too: `sqlflow attach {job.id}` follows it"
    else:
        yield f"job {job.id} runs this statement, too, in process {status.pid}"
