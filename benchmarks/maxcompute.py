"""MaxCompute, on its double: from a table to minibatches of `feed`, against pyodps's own readers.

The double encodes a range once and keeps the bytes, so that the client is measured. pyodps reads whole batches
of Arrow without decoding them, or makes a record of each row; ours also checks, resumes, and yields minibatches
in the form that `feed` receives.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.table import Row
from edl.data import Pinned, connect, open_reader
from edl.sources.maxcompute.source import MaxComputeSource
from tests.maxcompute.process import running

BATCH = 1000
RECORDS = 50_000  # rows for the slow reader


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    with running() as double, connect(double.url()) as source:
        assert isinstance(source, MaxComputeSource)
        table = _table(rows)
        began = time.perf_counter()
        source.stage("mixed", "benchmark", 0, 0, table.to_reader(65_536))
        written = rows / (time.perf_counter() - began)
        source.commit("mixed", "benchmark", 1)
        pinned = source.pin("SELECT * FROM mixed", folder / "pinned", seed=0, shuffle=False)
        session = source.client.download(pinned.table.name if pinned.table else "")
        ways: list[tuple[str, int, Callable[[int], int]]] = [
            ("ours", rows, lambda count: _ours(pinned, folder, count)),
            ("pyodps, Arrow", rows, lambda count: _arrow(session, count)),
            ("pyodps, records", min(rows, RECORDS), lambda count: _records(session, count)),
        ]
        rates = [[_rate(read, count) for _, count, read in ways] for _ in range(max(rounds, 3) + 1)][1:]
    figures = [float(np.median(each)) for each in zip(*rates, strict=True)]
    return [
        Row("maxcompute: table to minibatches", f"{figures[0]:,.0f} rows/s"),
        *(
            Row(
                f"… against {name}",
                f"{figures[place]:,.0f} rows/s",
                [each[0] / each[place] for each in rates],
                least=aim,
            )
            for place, (name, _, _), aim in ((1, ways[1], 0.87), (2, ways[2], None))
        ),
        Row("maxcompute: a result uploaded", f"{written:,.0f} rows/s"),
    ]


def _table(rows: int) -> pa.Table:
    """Make three whole numbers, three doubles, three texts and a time: about 126 bytes a row on the wire."""
    numbers = np.arange(rows)
    return pa.table(
        {
            **{f"i{k}": numbers * (k + 1) for k in range(3)},
            **{f"x{k}": numbers / (k + 3) for k in range(3)},
            **{f"s{k}": [f"text {n % 997} of {k}" for n in range(rows)] for k in range(3)},
            "at": pa.array(numbers * 1000, pa.timestamp("ms")),
        }
    )


def _rate(read: Callable[[int], int], count: int) -> float:
    began = time.perf_counter()
    found = read(count)
    assert found == count
    return count / (time.perf_counter() - began)


def _ours(pinned: Pinned, folder: Path, count: int) -> int:
    found = 0
    for batch in open_reader(pinned, folder).read(0, count):
        for start in range(0, batch.num_rows, BATCH):
            found += batch.slice(start, BATCH).num_rows
    return found


def _arrow(session: object, count: int) -> int:
    with session.open_arrow_reader(0, count) as reader:  # type: ignore[attr-defined]
        return sum(batch.num_rows for batch in reader)


def _records(session: object, count: int) -> int:
    with session.open_record_reader(0, count) as reader:  # type: ignore[attr-defined]
        return sum(1 for _ in reader)
