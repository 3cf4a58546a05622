"""`sqlflow job ID`: the state and progress of a job, with its processes or pods."""

from __future__ import annotations

import argparse
import sys

import msgspec

from sqlflow_edl.backends import find
from sqlflow_edl.backends.report import report
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import reported
from sqlflow_edl.display.job import write_job


@reported
def job(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    handle = find.find(options.id)
    found = report(handle.folder, handle.details())
    if options.format == "json":
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
        return exit_codes.OK
    write_job(found, sys.stdout)
    return exit_codes.OK
