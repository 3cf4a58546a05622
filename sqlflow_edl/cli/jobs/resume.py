"""`sqlflow resume ID`: continue a paused job, or a training that failed or died, from its last checkpoint.

The job continues in the background, where its model is stored when it ends; Ctrl-C stops following, not the job. A
model that is trained, and could not be stored, is stored at once.
"""

from __future__ import annotations

import argparse
import sys

from sqlflow_edl.backends import find
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.jobs.attach import follow


@report_errors
def resume_(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    handle = find.find(options.id)
    print(handle.resume(), file=sys.stderr)
    if handle.folder.status().state == "done":
        return exit_codes.OK
    if options.detach:
        print(f"follow it with `sqlflow attach {handle.folder.id}`", file=sys.stderr)
        return exit_codes.OK
    return follow(handle)
