"""`sqlflow cancel ID`: end a job that runs; only its log is left."""

from __future__ import annotations

import argparse
import sys

from sqlflow_edl.backends import find
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import reported


@reported
def cancel(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    print(find.cancel(find.find(options.id)), file=sys.stderr)
    return exit_codes.OK
