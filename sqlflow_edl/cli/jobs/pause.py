"""`sqlflow pause ID`: stop a job after a checkpoint, so that `sqlflow resume` continues it.

Ctrl-C stops the wait, not the pause.
"""

from __future__ import annotations

import argparse
import sys

from edl.models.pending import resume_command
from sqlflow_edl.backends import find
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors


@report_errors
def pause_(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    handle = find.find(options.id)
    print(f"{handle.pause()}\n{resume_command(handle.folder.path)} continues it", file=sys.stderr)
    return exit_codes.OK
