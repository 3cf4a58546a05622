"""Job folder of a foreground job of a command or a script."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from edl.errors import SQLFlowError
from edl.jobs import job_folder as jobs
from edl.jobs.outcome import JobDiedError
from edl.jobs.termination import TerminatedError


@contextlib.contextmanager
def job_folder(kind: jobs.Kind, statement: str = "") -> Iterator[jobs.JobFolder]:
    """Create a job folder inside the context and remove it at the end; see `ending`."""
    job = jobs.create(kind, statement)
    with remove_at_end(job):
        yield job


@contextlib.contextmanager
def remove_at_end(job: jobs.JobFolder) -> Iterator[None]:
    """Remove the job folder at the end of the context.

    The folder of a failed job stays if it has logs, and whatever the error if it has the result: that was not stored.
    Raises JobError for an OSError in the folder.
    """
    kept = False
    try:
        with job.disk_errors():
            yield
    except BaseException as error:
        if job.has_result:
            kept = True
            _keep_result(job, error)
            raise
        status = job.status()
        if isinstance(error, TerminatedError) and not error.cancels:
            if status.state == "running":  # it had no supervisor
                _record_end(job, "interrupted")
            if kept := _can_continue(job):
                error.kept.append(job.id)
                print(_continuation(job), file=sys.stderr)
        if not isinstance(error, SQLFlowError):
            raise
        # Otherwise its supervisor has recorded the end.
        if status.state not in ("failed", "cancelled", "died", "paused", "interrupted"):
            _record_end(job, "died" if isinstance(error, JobDiedError) else "failed", error.message)
        continues = _can_continue(job)
        kept = continues or any(job.logs.iterdir())
        if continues:
            error.add_hint(_continuation(job))
        raise
    finally:
        if not kept:
            job.remove()


def _record_end(job: jobs.JobFolder, state: jobs.State, error: str = "") -> None:
    """Record the end of the job. Without room on the disk, it counts as died once this process has ended."""
    with contextlib.suppress(OSError):
        job.end(state, error)


def _can_continue(job: jobs.JobFolder) -> bool:
    """Return True if the job can be resumed, also if its end is not recorded."""
    return job.can_resume or (job.status().state == "running" and job.is_resumable)


def _continuation(job: jobs.JobFolder) -> str:
    """Return the command that continues the job, in a sentence."""
    if job.status().kind == "run":
        return f"`edl run --resume {job.path}` continues the script"
    return f"`edl train --resume {job.path}` continues the training"


def _keep_result(job: jobs.JobFolder, error: BaseException) -> None:
    """Record that the result of the job is still to be stored, and say how that is done."""
    why = error.message if isinstance(error, SQLFlowError) else f"{type(error).__name__} {error}".strip()
    with contextlib.suppress(OSError):
        job.end("failed", f"its output was not written: {why}")
    place = job.archive if job.archive.exists() else job.results
    rest = f"it is in {place}, and `edl fetch {job.id}` writes it"
    if isinstance(error, SQLFlowError):
        error.add_hint(rest)
    else:
        print(f"the output is not written: {rest}", file=sys.stderr)
