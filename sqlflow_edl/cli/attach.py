"""`sqlflow attach ID`: follow a job that runs without us, from its start to its end. Ctrl-C leaves it running."""

from __future__ import annotations

import argparse
import sys

from edl.data.jobs import JobFolder
from edl.tasks.outcome import Outcome
from sqlflow_edl import jobs
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.reported import reported
from sqlflow_edl.display.final_report import bars
from sqlflow_edl.display.narrator import Narrator
from sqlflow_edl.reports.words import duration, figures


@reported
def attach(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    handle = jobs.find(options.id)
    job = handle.folder
    narrator = Narrator(sys.stderr)
    try:
        outcome = handle.follow(narrator)
    except KeyboardInterrupt:
        narrator.say(f"job {job.id} goes on; `sqlflow cancel {job.id}` ends it")
        return exit_codes.INTERRUPTED
    finally:
        narrator.clear()
    for note in outcome.notes:
        narrator.note(note)
    narrator.say(_ending(job, outcome))
    if outcome.kind == "explain":
        for line in bars(outcome.figures):
            narrator.say(line)
    return exit_codes.OK


def _ending(job: JobFolder, outcome: Outcome) -> str:
    measured = f"; {figures(outcome.figures)}" if outcome.figures and outcome.kind != "explain" else ""
    text = f"job {job.id}: {outcome.kind}, {outcome.rows:,} rows in {duration(outcome.seconds)}{measured}"
    if outcome.stored:
        text += f"; stored {outcome.stored}"
    if job.status().unclaimed:
        text += "\nwhat it made is stored by the next sqlflow that opens its data source"
    return text
