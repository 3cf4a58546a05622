"""`sqlflow attach ID`: follow a detached job from its start to its end.

Ctrl-C stops following, not the job.
"""

from __future__ import annotations

import argparse
import sys
import time

from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobInterruptedError, JobPausedError, Outcome
from edl.jobs.termination import TerminatedError
from edl.models.pending import read_intent, resume_command
from sqlflow_edl.backends import find
from sqlflow_edl.backends.base import JobHandle
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.display.final_report import bars
from sqlflow_edl.display.narrator import Narrator
from sqlflow_edl.reports.text import duration, format_figures

COMMIT_SECS = 10.0  # longest wait for the commit of a detached job's results
POLL = 0.05


@report_errors
def attach(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return follow(find.find(options.id))


def follow(handle: JobHandle) -> int:
    """Follow the job to its end and return the exit code."""
    job = handle.folder
    narrator = Narrator(sys.stderr)
    try:
        outcome = handle.follow(narrator)
        _wait_for_commit(job)
    except TerminatedError:
        raise
    except KeyboardInterrupt:
        narrator.say(f"job {job.id} continues; `sqlflow cancel {job.id}` cancels it")
        return exit_codes.INTERRUPTED
    except JobPausedError:
        narrator.say(f"job {job.id} is paused; {resume_command(job.path)} continues it")
        return exit_codes.FAILED
    except JobInterruptedError:
        narrator.say(f"job {job.id} was interrupted; {resume_command(job.path)} continues it")
        return exit_codes.TERMINATED
    finally:
        narrator.clear()
    for note in outcome.notes:
        narrator.note(note)
    narrator.say(_describe_end(job, outcome))
    if outcome.kind == "explain":
        for line in bars(outcome.figures):
            narrator.say(line)
    return exit_codes.OK if job.status().state != "failed" else exit_codes.FAILED


def _wait_for_commit(job: JobFolder) -> None:
    """Wait a moment for the process that stores the job's results, which may find the data source in use."""
    process = ClusterFolder(job.path).process("commit")
    deadline = time.monotonic() + COMMIT_SECS
    while (
        job.status().state == "finished"
        and process is not None
        and process.runs
        and time.monotonic() < deadline
    ):
        time.sleep(POLL)


def _describe_end(job: JobFolder, outcome: Outcome) -> str:
    measured = f"; {format_figures(outcome.figures)}" if outcome.figures and outcome.kind != "explain" else ""
    took = f" in {duration(outcome.seconds)}" if outcome.seconds else ""
    text = f"job {job.id}: {outcome.kind}, {outcome.rows:,} rows{took}{measured}"
    status = job.status()
    intent = read_intent(job.path) if status.state == "done" else None
    if stored := outcome.stored or (intent.name if intent is not None else ""):
        text += f"; {'added its rows to' if intent is not None and intent.append else 'stored'} {stored}"
        if intent is not None and intent.rival is not None:
            text += f"; {intent.rival.verdict(outcome.figures, stored)}"
    if status.state == "done" and job.zoo.is_dir():
        text += f"; `edl fetch {job.id}` gets what it made"
    if status.state == "failed":
        text += f"\nits result could not be stored: {status.error}"
    if status.is_unclaimed:
        text += "\nits result is stored as soon as no other process has the data source open"
    return text
