"""`sqlflow cancel ID`: cancel a running job; only its log remains."""

from __future__ import annotations

import argparse
import sys

from sqlflow_edl.backends import find
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors


@report_errors
def cancel(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    print(find.cancel(find.find(options.id)), file=sys.stderr)
    return exit_codes.OK
