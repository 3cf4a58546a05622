"""`sqlflow cancel ID`: end a job that runs; only its log is left."""

from __future__ import annotations

import argparse
import sys

from edl.cluster import client
from edl.data import jobs
from edl.errors import ClusterError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.reported import reported
from sqlflow_edl.reports.jobs import state_of


@reported
def cancel(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    job = jobs.find(options.id)
    status = job.status()
    if not status.alive:
        raise ClusterError(f"job {job.id} does not run: it is {state_of(status)}")
    if client.is_supervised(job):
        client.cancel(job)
    else:
        hint = "it ends with Ctrl-C there, or with that process"
        raise ClusterError(f"job {job.id} runs inside process {status.pid}, with other work of it", hint=hint)
    print(f"job {job.id}: {job.status().state}", file=sys.stderr)
    return exit_codes.OK
