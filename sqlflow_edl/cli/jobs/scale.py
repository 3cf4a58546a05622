"""`sqlflow scale ID --workers N --servers N`: change the numbers of workers and servers of a running job."""

from __future__ import annotations

import argparse
import sys

from sqlflow_edl.backends import find
from sqlflow_edl.backends.base import Numbers
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors


@report_errors
def scale_(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    numbers = Numbers(options.workers, options.servers)
    if numbers == Numbers():
        print("error: --workers N or --servers N is missing", file=sys.stderr)
        return exit_codes.USAGE
    print(find.find(options.id).scale(numbers), file=sys.stderr)
    return exit_codes.OK
