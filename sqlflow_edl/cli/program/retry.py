"""`sqlflow retry`: run the statements of the last failed program that have not succeeded."""

from __future__ import annotations

import argparse

from edl.data import redacted
from edl.errors import SQLFlowError
from edl.jobs.cores import limit_cores
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.program.record import load
from sqlflow_edl.cli.program.run import run
from sqlflow_edl.cli.program.variables import variable


@report_errors
def retry(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from sqlflow_edl.cli.main import _parser

    record = load()
    again = _parser().parse_args(["run", *record.arguments])
    again.arguments, again.done = record.arguments, record.done
    again.var = [
        variable(variable_given.name, variable_given.written, record.at) for variable_given in again.var
    ]
    again.debug = again.debug or options.debug
    if most := again.threads or options.config.threads:
        limit_cores(most)
    if redacted(again.source or "") != record.source:
        raise SQLFlowError(
            "the last failed program ran on another data source",
            hint=f"set SQLFLOW_SOURCE to {record.source}",
        )
    return run(again)
