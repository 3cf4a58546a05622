"""Sessions' view of detached jobs, which continue without their client.

A process of the job commits its result (`edl.master.commit`). An embedded database can be open in only one
process at a time, so where that process could not open the data source, a session that has it open commits
instead.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from edl.data import Source, connect
from edl.data.source import ConflictError, UnreachableError
from edl.data.url import absolute
from edl.errors import SourceError, SpecError
from edl.jobs import job_folder
from edl.master.commit import commit
from edl.models.pending import Intent, folder_of, mark_handled, read_intent, registry_of

PATIENCE = 15.0  # seconds to wait for a source that a job's commit has open
PAUSE = 0.1


def open_source(
    url: str,
    *,
    create: bool,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> Source:
    """Open the data source, waiting while a finished job is being committed.

    Raises SourceError if it cannot be opened.
    """
    deadline = clock() + PATIENCE
    while True:
        try:
            return connect(url, create=create)
        except SourceError:
            if clock() >= deadline or not any(job.is_claimed() for job in job_folder.find_unclaimed_jobs()):
                raise
        pause(PAUSE)


def waits(url: str) -> bool:
    """Return True if a finished job of this source is not committed."""
    for job in job_folder.find_unclaimed_jobs():
        with contextlib.suppress(SpecError):  # reported when a session opens
            if (intent := read_intent(job.path)) is not None and _is_of(job, intent, url):
                return True
    return False


def _is_of(job: job_folder.JobFolder, intent: Intent, url: str) -> bool:
    """Return True if the job's result goes into the source with this URL. Relative paths are of the job's folder.

    A job of the `edl` command names no source, because its result is a file; the scheme may be one of another version.
    """
    try:
        source = absolute(intent.source, folder_of(job))
    except SourceError:
        return False
    return source == absolute(url, Path.cwd())


def commit_finished(source: Source) -> Iterator[str]:
    """Commit the finished jobs of this source and record the failed ones; yield a sentence for each."""
    yield from _list_failures(source)
    for job in job_folder.find_unclaimed_jobs():
        try:
            intent = read_intent(job.path)
        except SpecError as error:  # one job must not stop all sessions
            yield error.message
            continue
        if intent is not None and not _is_of(job, intent, source.url):
            continue
        with job.claim() as ours:
            if not ours:
                continue
            if intent is None:
                job.end("died", "its client ended before it could store the result")
                continue
            try:
                yield commit(job, intent, source).record(job)
            except (ConflictError, UnreachableError) as error:  # the next statement or session tries again
                yield f"the result of job {job.id} is not stored yet: {error.message}"


def _list_failures(source: Source) -> Iterator[str]:
    """Record the failures of detached trainings in the registry, each once."""
    for job, status in job_folder.list_changing():
        # Of one elsewhere, its master has recorded the reason.
        if status.state not in ("failed", "died") or status.place:
            continue
        try:
            intent = read_intent(job.path)
        except SpecError:  # reported where jobs are listed
            continue
        if intent is None or not _is_of(job, intent, source.url):
            continue
        try:
            mark_handled(job.path)
        except FileNotFoundError:  # another session was faster
            continue
        if intent.record is not None:
            registry_of(intent, source).record_failure(intent.name, intent.record, status.error)
        rest = f"; `sqlflow resume {job.id}` continues it" if job.can_resume else ""
        if job.archive.exists():
            rest = f"; `sqlflow resume {job.id}` stores its model"
        yield f"job {job.id} {status.state}: {status.error}{rest}"
