"""Runner of the benchmarks. Prints one table: figure, ratio to the peer in the same run, and target.

    python -m benchmarks [training embeddings … first_step elastic flights] [--rounds 3] [--quick]

Machines are noisy, so peers take turns within a round and a ratio is the median over rounds of figures of one
round. The exit code is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from benchmarks.table import Row, show

CASES = {  # a module is loaded when it is measured: each has packages of its own
    "training": "training.measure",
    "embeddings": "embeddings.measure",
    "click_log": "click_log.measure",
    "rows": "rows.measure",
    "predict": "predicting.measure",
    "explain": "explaining.measure",
    "compile": "compiling.measure",
    "startup": "compiling.startup",
    "first_step": "first_step.measure",
    "serving": "serving.measure",
    "rest": "rest.measure",
    "elastic": "elastic.measure",
    "servers": "servers.measure",
    "encryption": "encryption.measure",
    "steps": "steps.measure",
    "gpu": "gpu.measure",
    "flights": "flights.measure",
    "quality": "quality.measure",
    "forecasts": "forecasts.measure",
    "intervals": "intervals.measure",
    "limits": "limits.measure",
    "modes": "modes.measure",
    "traffic": "traffic.measure",
    "allreduce": "allreduce.measure",
    "lost_member": "lost_member.measure",
    "interrupted": "interrupted.measure",
    "replacing": "replacing.measure",
    "quota": "quota.measure",
    "pinning": "pinning.measure",
    "mysql": "mysql.measure",
    "postgresql": "postgresql.measure",
    "maxcompute": "maxcompute.measure",
    "pod_start": "pod_start.measure",
    "pods": "pods.measure",
    "preempting": "preempting.measure",
    "scale": "scale.measure",
    "queued": "preempting.measure_queued",
}
LONG = {"goodput": "interrupted.measure_published"}  # only by name


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Ratios against peers, side by side in one run."
    )
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*CASES, *LONG, []],
        help="which; by default all but goodput, which takes 34 minutes",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows: does it run at all?")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="for the figures that a benchmark draws (quota)"
    )
    options = parser.parse_args()
    table: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or CASES:
            print(f"{name} …", file=sys.stderr, flush=True)
            module, _, function = (CASES | LONG)[name].partition(".")
            measure = getattr(import_module(f"benchmarks.{module}"), function)
            table += measure(Path(folder), options.rounds, 100_000 if options.quick else 1_000_000)
        if options.keep:
            for drawn in Path(folder).glob("drawn/*"):
                shutil.copyfile(drawn, options.keep / drawn.name)
    show(table)
    return 1 if any(row.missed for row in table) and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
