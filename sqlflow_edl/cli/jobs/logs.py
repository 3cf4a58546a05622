"""`sqlflow logs ID [INSTANCE]`: print the output of a job's instances, and follow it."""

from __future__ import annotations

import argparse
import sys

from sqlflow_edl.backends import find
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.display.job import write_logs


@report_errors
def logs(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    with find.logs(find.find(options.id), options.instance, follow=options.follow) as lines:
        write_logs(lines, sys.stdout, named=options.instance is None, flush=options.follow)
    return exit_codes.OK
