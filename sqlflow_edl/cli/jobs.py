"""`sqlflow jobs`: the jobs that this user started on this machine, the oldest first."""

from __future__ import annotations

import argparse
import sys

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.reported import reported
from sqlflow_edl.display.output import FORMATS, write_rows
from sqlflow_edl.jobs import listed
from sqlflow_edl.reports.jobs import JOBS, list_rows
from sqlflow_edl.reports.table import texts


@reported
def jobs(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    rows = list(list_rows(listed()))
    if options.format == "table":
        write_rows(((name, False) for name in JOBS), rows, sys.stdout)
    else:
        FORMATS[options.format](texts(JOBS, rows), sys.stdout)
    print(f"{len(rows):,} job{'' if len(rows) == 1 else 's'}", file=sys.stderr)
    return exit_codes.OK
