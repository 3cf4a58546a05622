"""Judgement of a job that is no longer in the cluster, by what it left in its data source.

A model in the registry and a row in the table of committed results carry the id of their job. The absence of both
proves nothing, since measures are stored nowhere, and models may have been dropped. A checkpoint there outlives the job
that kept it, and each later run of it that fails.
"""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime
from typing import NamedTuple

from edl.checkpoints.kept import KeptCheckpoints, keeps_checkpoints
from edl.data import connect, redacted
from edl.errors import JobError, SQLFlowError
from edl.jobs.failure import Failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.pending import destination, registry_of

GONE = "its Job is no longer in the cluster: it was deleted, or its time to live expired"
RESULT_FOUND = f"{GONE}; its result was found in its data source"


class Remains(NamedTuple):
    """End of a job as its data source shows it. end: None if nothing shows it, for the reason in `why`."""

    end: Outcome | Failed | None
    why: str = ""


def judge_absent(job: JobFolder) -> Remains:
    """Look for the result of the job in its data source, which may take as long as a connection to it."""
    try:
        end = _find_end(job)
    except SQLFlowError as error:
        return Remains(None, f"{GONE}; its data source cannot be asked for its result: {error.message}")
    if end is None:
        return Remains(None, f"{GONE}; nothing shows whether it was done")
    return Remains(end)


def _find_end(job: JobFolder) -> Outcome | Failed | None:
    intent, status = destination(job.path), job.status()
    if intent is None or not (intent.source and intent.name):
        return None
    with closing(connect(_with_password_of_command(intent.source))) as source:
        if intent.record is None:
            rows = source.committed_rows(intent.name, job.id)
            if rows is None:
                return None
            stored = f"{intent.name}: {rows:,} row{'' if rows == 1 else 's'}"
            return Outcome(intent.kind, rows, 0.0, stored=stored, notes=(RESULT_FOUND,))
        version = registry_of(intent, source).version_with_key(intent.name, job.id)
        is_kept = keeps_checkpoints(source.url) and bool(KeptCheckpoints(source).names(job.id))
    if version is None:
        return None
    if version.state == "failed":
        return Failed(JobError.code, version.reason, kept=is_kept)
    seconds = (
        datetime.fromisoformat(version.created) - datetime.fromisoformat(status.started)
    ).total_seconds()
    figures, rows = version.record.metrics, version.record.rows
    return Outcome(
        "train", rows, max(seconds, 0.0), figures=figures, stored=version.reference, notes=(RESULT_FOUND,)
    )


def has_checkpoint(job: JobFolder) -> bool | None:
    """Return True if the data source of a training has its checkpoint, None if it cannot be asked."""
    intent = destination(job.path)
    if job.status().kind != "train" or intent is None or not keeps_checkpoints(intent.source):
        return False
    try:
        with closing(connect(_with_password_of_command(intent.source))) as source:
            return bool(KeptCheckpoints(source).names(job.id))
    except SQLFlowError:
        return None


def _with_password_of_command(source: str) -> str:
    """Return the URL with the password that this command was given for it, if any."""
    of_command = os.environ.get("SQLFLOW_SOURCE", "")
    return of_command if of_command and redacted(of_command) == source else source
