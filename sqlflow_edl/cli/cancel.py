"""`sqlflow cancel ID`: end a job that runs; only its log is left."""

from __future__ import annotations

import argparse
import sys

from edl.errors import ClusterError
from sqlflow_edl import jobs
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.reported import reported
from sqlflow_edl.reports.jobs import state_of


@reported
def cancel(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    job = jobs.find(options.id)
    status = job.look().status
    if not status.alive:
        raise ClusterError(f"job {job.folder.id} does not run: it is {state_of(status)}")
    job.cancel()
    print(f"job {job.folder.id}: {job.folder.status().state}", file=sys.stderr)
    return exit_codes.OK
