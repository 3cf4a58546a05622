"""`edl quota DIR [--slots N]`: make a quota of slots or change its size, and list the jobs with their slots."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edl.cli.arguments import positive
from edl.cluster.quota.quota import Quota
from edl.jobs.slots import Demand, allot
from edl.spec.priorities import name

COLUMNS = ("job", "priority", "holds", "is to hold", "asks for")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="folder of the quota, for the option --quota of jobs"
    )
    text = "set the number of slots, which limits the workers and servers of all its jobs; creates the folder"
    parser.add_argument("--slots", type=positive, metavar="N", help=text)


def run(options: argparse.Namespace) -> None:
    """Print the table to standard output. Raises ClusterError if there is no such quota."""
    quota = Quota(options.folder.absolute())
    if options.slots is not None:
        quota.resize(options.slots)
    slots, demands = quota.look()
    rows = [COLUMNS, *_rows(demands, slots)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    for row in rows if demands else ():
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    held, waiting = sum(demand.holds for demand in demands), sum(not demand.holds for demand in demands)
    print(f"{held:,} of {slots:,} slots are in use; waiting jobs: {waiting:,}", file=sys.stderr)


def _rows(demands: list[Demand], slots: int) -> list[tuple[str, ...]]:
    allotment = allot(demands, slots)
    return [
        (
            demand.job,
            name(demand.request.priority),
            str(demand.holds),
            str(allotment[demand.job]),
            f"{demand.request.least} to {demand.request.most}",
        )
        for demand in demands
    ]
