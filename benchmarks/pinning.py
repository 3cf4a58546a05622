"""Fixing the order of the rows of a Parquet file, beside DuckDB reading and hashing all its values.

The file has ten rows for each of the benchmark's rows, with five columns: two whole numbers, two fractions and a text.
Each round is a process of its own. Its processor time counts all its threads; its memory is what it held at most,
beyond what it held before and beyond the rows themselves.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import duckdb

from benchmarks.table import Row
from edl.data import connect
from edl.spec import Split

ROWS_OF_FILE = 10  # for each row that is asked for
COLUMNS = (
    "range AS id, (hash(range) % 1000000) / 1e3 AS price, (hash(range + 7) % 100000)::INT AS quantity,"
    " 'city' || (hash(range * 3) % 500) AS city, (hash(range + 1) % 1000000) / 1e6 AS y"
)
SPLITS = {"no split": None, "a tenth apart": Split("random", "y", 0.1)}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    rows *= ROWS_OF_FILE
    file = folder / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {COLUMNS} FROM range({rows})) TO '{file}' (FORMAT parquet)")
    lines: list[Row] = []
    for name in SPLITS:
        measured = [_round(file, name, folder / "pinned") for _ in range(max(rounds, 3))]
        rate = median(rows / seconds for seconds, _, _ in measured)
        memory = median(most / rows for _, _, most in measured)
        lines += [
            Row(f"pinning: {rows:,} rows, {name}", f"{rate:,.0f} rows/s", value=rate, least=1e6),
            Row("… processor time of reads by DuckDB", "", [ratio for _, ratio, _ in measured], most=12),
            Row("… memory beyond the rows", f"{memory:.0f} bytes a row", value=memory, most=60),
        ]
    return lines


def _round(file: Path, name: str, folder: Path) -> tuple[float, float, float]:
    """Return seconds, the ratio of processor times, and bytes of memory, of another process."""
    command = [sys.executable, "-m", "benchmarks.pinning", str(file), name, str(folder)]
    seconds, ratio, most = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return seconds, ratio, most


def _measure_times(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds and the processor seconds of the work."""
    began, before = time.monotonic(), os.times()
    work()
    after = os.times()
    return time.monotonic() - began, after.user - before.user + after.system - before.system


def _memory() -> int:
    """Return the bytes that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> None:
    file, name, folder = sys.argv[1:]
    with duckdb.connect() as connection:
        values = "hash(id, price, quantity, city, y)"
        _, read = _measure_times(
            lambda: connection.execute(f"SELECT bit_xor({values}) FROM '{file}'").fetchall()
        )
    with connect(file) as source:
        before = _memory()
        query, rows = "SELECT * FROM rows", Path(folder)
        seconds, ours = _measure_times(
            lambda: source.pin(query, rows, seed=1, shuffle=True, split=SPLITS[name])
        )
        most = _memory() - before - (rows / "rows.arrow").stat().st_size
    print(json.dumps([seconds, ours / read, most]))


if __name__ == "__main__":
    main()
