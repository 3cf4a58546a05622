"""`sqlflow jobs`: list the jobs that this user started on this machine, oldest first."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta

from edl.data.cells import format_count
from sqlflow_edl.backends.find import summaries, tables_held
from sqlflow_edl.backends.report import JOBS, list_rows
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.display.job import write_jobs
from sqlflow_edl.display.output import WRITERS, write_records
from sqlflow_edl.reports.table import texts


@report_errors
def jobs(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.clean:
        from edl.master import resume  # loads more than a list needs

        cleaned = resume.remove_kept_files()
        print(f"removed the rows and checkpoints of {format_count(len(cleaned), 'job')}", file=sys.stderr)
    if options.remove_after is not None:
        from edl.master import resume

        removed = resume.remove_older(timedelta(seconds=options.remove_after))
        print(f"removed {format_count(len(removed), 'job')} with logs", file=sys.stderr)
    rows = list(list_rows(summaries()))
    if options.format == "table":
        footer = write_jobs(rows, sys.stdout)
    else:
        footer = format_count(len(rows), "job")
        if options.format == "vertical":
            write_records([(name, False) for name in JOBS], rows, sys.stdout)
        else:
            WRITERS[options.format](texts(JOBS, rows), sys.stdout)
    print(footer, *tables_held(), sep="\n", file=sys.stderr)
    return exit_codes.OK
