"""`sqlflow samples`: write tables with real data to a database, to learn on."""

from __future__ import annotations

import argparse
import sys

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import reported
from sqlflow_edl.cli.source import no_source


@reported
def samples(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from edl.data import connect
    from sqlflow_edl.samples.tables import write

    if not options.source:
        return no_source(options)
    with connect(options.source, create=True) as source:
        for table, rows in write(source):
            print(f"{table}: {rows:,} rows", file=sys.stderr)
        print(f"written to {source.url}; samples/*.sql are programs to start with", file=sys.stderr)
    return exit_codes.OK
