"""Commit of what a detached job left in its folder to its data source: `python -m edl.master.commit JOB_FOLDER`.

The supervisor starts this process when the job has finished, and ends. An embedded database is open in one process at a
time, so the process tries again, with growing pauses, and in the end leaves it to the next session. Sessions that have
the source open commit too. The claim of the job folder is held during a commit, so there is one, and a commit that is
repeated after a crash finds the version that the first one stored.

Passwords are not in the job folder: they come from the environment that the supervisor has from the client.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from edl import exit_codes
from edl.data import Source, connect, pandas_later
from edl.data.source import ConflictError, UnreachableError
from edl.errors import SourceError, SQLFlowError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import read_end
from edl.jobs.job_folder import JobFolder, State
from edl.jobs.outcome import Outcome
from edl.logs import log
from edl.models.commit import commit_result, kept_outcome
from edl.models.pending import Intent, mark_handled, read_intent, registry_of

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 15.0  # seconds between two attempts, doubled each time
PATIENCE = 600.0  # seconds, after which the commit is left to the next session


class Committed(NamedTuple):
    """End of a job after its commit: its state, the result as a sentence, and why the job failed."""

    state: State
    message: str
    error: str = ""

    def record(self, job: JobFolder) -> str:
        """End the job, and return the sentence. An embedded database that others wait for must be closed before."""
        job.end(self.state, self.error)
        return self.message


def commit(job: JobFolder, intent: Intent, source: Source) -> Committed:
    """Store what the claimed job made.

    ConflictError, UnreachableError: nothing is stored, and it may be tried again. Other errors fail the job.
    """
    end = read_end(ClusterFolder(job.path).events) or kept_outcome(job)
    if not isinstance(end, Outcome):
        return Committed("failed", f"job {job.id} has no result", "the job left no result")
    try:
        stored = commit_result(job, intent, source, registry_of(intent, source), end)
    except (ConflictError, UnreachableError):
        raise
    except (SQLFlowError, OSError) as error:
        why = error.message if isinstance(error, SQLFlowError) else str(error)
        mark_handled(job.path)
        place = ""
        if job.archive.exists():
            place = f"; the model is in {job.archive}, and `sqlflow resume {job.id}` stores it"
        return Committed("failed", f"the result of job {job.id} could not be stored: {why}{place}", why)
    if intent.record is not None:
        verdict = f"; {stored.verdict}" if stored.verdict else ""
        return Committed("done", f"job {job.id} had finished: stored the model {stored.name}{verdict}")
    did = "added" if intent.append else "wrote"
    return Committed("done", f"job {job.id} had finished: {did} {stored.rows:,} rows to {stored.name}")


def commit_when_possible(
    job: JobFolder,
    intent: Intent,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> bool:
    """Commit as soon as the source can be opened; False: given up, for the next session."""
    began, seconds, said = clock(), FIRST_PAUSE, ""
    while job.status().state == "finished":
        try:
            with job.claim() as ours:
                if ours:
                    with closing(connect(intent.source)) as source:
                        committed = commit(job, intent, source)
                    log(committed.record(job))
        except SourceError as error:
            if clock() - began > PATIENCE:
                log(f"left to the next session with the data source: {error.message}")
                return False
            if error.message != said:
                said = error.message
                log(f"not committed yet: {said}")
        if job.status().state == "finished":
            if clock() - began > PATIENCE:
                return False
            pause(seconds)
            seconds = min(2 * seconds, LONGEST_PAUSE)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    [folder] = sys.argv[1:] if arguments is None else arguments
    pandas_later.postpone()
    job = JobFolder(Path(folder))
    try:
        intent = read_intent(job.path)
        if intent is None:
            return exit_codes.OK
        return exit_codes.OK if commit_when_possible(job, intent) else exit_codes.FAILED
    except SQLFlowError as error:
        log(error.report)
        return exit_codes.FAILED


if __name__ == "__main__":
    sys.exit(main())
