"""`sqlflow checkpoints ID`: list the checkpoints of a job, verify them, or write one as a model; see
`edl.cli.checkpoints`.
"""

from __future__ import annotations

import argparse

from edl.cli import checkpoints
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors


@report_errors
def checkpoints_(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    options.job = options.id
    checkpoints.run(options)
    return exit_codes.OK
