"""`sqlflow jobs`: the jobs of this user on this machine, the oldest first."""

from __future__ import annotations

import argparse
import sys

from edl.data import jobs as folders
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.output import FORMATS
from sqlflow_edl.cli.reported import reported
from sqlflow_edl.reports.jobs import list_table


@reported
def jobs(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    footer = FORMATS[options.format](list_table(folders.jobs()), sys.stdout)
    print(footer.replace("row", "job"), file=sys.stderr)
    return exit_codes.OK
