"""The user's jobs, wherever they run: the one place that tells the kinds of handles apart."""

from __future__ import annotations

from collections.abc import Iterator

from edl.data import jobs
from edl.data.jobs import JobFolder
from edl.errors import SpecError
from sqlflow_edl.handles import JobHandle, Listed
from sqlflow_edl.handles.here import Here


def find(job_id: str) -> JobHandle:
    """The job of an id, or of its only beginning or end. SemanticError: none, or several."""
    return handle(jobs.find(job_id))


def handle(folder: JobFolder) -> JobHandle:
    """SpecError: the job's folder is damaged."""
    return Here(folder)


def listed() -> Iterator[Listed]:
    """All jobs, the oldest first."""
    for folder in jobs.jobs():
        try:
            yield Here(folder).listed()
        except SpecError:
            yield Listed(folder.id, None)
