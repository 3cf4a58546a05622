"""`sqlflow job ID`: the state and progress of a job, with its processes or pods; `--watch` until it ends."""

from __future__ import annotations

import argparse
import sys
import time
from typing import IO

import msgspec

from edl.jobs.termination import TerminatedError
from sqlflow_edl.backends import find
from sqlflow_edl.backends.base import JobHandle
from sqlflow_edl.backends.report import report
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.display.job import live_job, write_job
from sqlflow_edl.display.terminal import capabilities, is_smart

PERIOD = 1.0  # seconds between two views; a master replaces its snapshot as often


@report_errors
def job(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    handle = find.find(options.id)
    if options.watch:
        return watch(handle, sys.stdout)
    job_report = report(handle.folder, handle.details())
    if options.format == "json":
        print(msgspec.json.format(msgspec.json.encode(job_report)).decode())
        return exit_codes.OK
    write_job(job_report, sys.stdout)
    return exit_codes.OK


def watch(handle: JobHandle, out: IO[str]) -> int:
    """Show the job on the whole terminal until it ends, then as `sqlflow job` does; return the exit code."""
    if not is_smart(out):
        print(
            "sqlflow job: --watch needs a terminal; sqlflow attach follows a job elsewhere", file=sys.stderr
        )
        return exit_codes.USAGE
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=out, highlight=False), screen=True, auto_refresh=False) as live:
        try:
            while True:
                details = handle.details()
                job_report = report(handle.folder, details)
                live.update(live_job(job_report, capabilities(out)), refresh=True)
                if not details.status.is_alive:
                    break
                time.sleep(PERIOD)
        except TerminatedError:
            raise
        except KeyboardInterrupt:
            ended = False
        else:
            ended = True
    write_job(job_report, out)
    if not ended:
        print(f"job {job_report.id} continues", file=sys.stderr)
        return exit_codes.INTERRUPTED
    return (
        exit_codes.FAILED
        if job_report.state in ("failed", "died", "interrupted", "unknown")
        else exit_codes.OK
    )
