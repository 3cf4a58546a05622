"""Missing data source of a command: the message and its remedy."""

from __future__ import annotations

import argparse
import sys

from sqlflow_edl.cli import exit_codes

_NONE = """\
sqlflow {command}: no data source; give --source URL or set SQLFLOW_SOURCE
  sqlflow samples --source duckdb:///demo.duckdb   creates a database with sample tables
  sqlflow {command} --source duckdb:///demo.duckdb   then opens it; docs/sources.md has the other URLs"""


def no_source(options: argparse.Namespace) -> int:
    """Print that the command has no data source, and how to name one; return the exit code."""
    print(_NONE.format(command=options.command), file=sys.stderr)
    return exit_codes.USAGE
