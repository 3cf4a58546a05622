"""`sqlflow scale ID --workers N`: change the number of workers of a running job."""

from __future__ import annotations

import argparse
import sys

from sqlflow_edl.backends import find
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import reported


@reported
def scale_(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    print(find.find(options.id).scale(options.workers), file=sys.stderr)
    return exit_codes.OK
