"""`sqlflow samples`: write tables with real data to a database, to learn on."""

from __future__ import annotations

import argparse
import shlex
import sys

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.source import no_source

BEGIN = "SELECT * FROM employee LABEL income INTO incomes"


@report_errors
def samples(options: argparse.Namespace) -> int:
    """Run the command and return the exit code. Tables of packages that are not installed are named, not written."""
    from edl.data import connect
    from sqlflow_edl.samples.tables import TABLES, install_package, missing_packages, write

    if not options.source:
        return no_source(options)
    absent = missing_packages()
    left_out = {table for tables in absent.values() for table in tables}
    with connect(options.source, create=True) as source:
        for table, rows in write(source, [name for name in TABLES if name not in left_out]):
            print(f"{table}: {rows:,} rows", file=sys.stderr)
        for package, tables in absent.items():
            print(
                f"left out: {', '.join(tables)}, tables of {package}: {install_package(package)}",
                file=sys.stderr,
            )
        print(f"written to {source.url}; to begin with:", file=sys.stderr)
        begin = f"sqlflow run --source {shlex.quote(str(source.url))} -e '{BEGIN}'"
        print(f"  {begin}", file=sys.stderr)
    return exit_codes.OK
