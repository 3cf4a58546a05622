"""Numbers of rows in bins of equal width, in two passes over the rows, whose number does not matter.

SELECT … TO RUN samples/runnables/binning.py CMD "--columns=alcohol,hue", "--bins=5" INTO bins
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa

from edl.runnable import rows, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", required=True, help="numeric columns, with commas")
    parser.add_argument("--bins", type=int, default=10)
    options = parser.parse_args()
    names = options.columns.split(",")
    ranges = {name: [np.inf, -np.inf] for name in names}
    for batch in rows(names):
        for name, bounds in ranges.items():
            values = numbers(batch, name)
            bounds[:] = [
                min(bounds[0], values.min(initial=np.inf)),
                max(bounds[1], values.max(initial=-np.inf)),
            ]
    edges = {
        name: np.linspace(*bounds, options.bins + 1)
        for name, bounds in ranges.items()
        if np.isfinite(bounds).all()
    }
    counts = {name: np.zeros(options.bins, np.int64) for name in edges}
    for batch in rows(names):
        for name, own in counts.items():
            own += np.histogram(numbers(batch, name), edges[name])[0]
    write(table(name, edges[name], own) for name, own in counts.items())


def numbers(batch: pa.RecordBatch, name: str) -> np.ndarray:
    return batch[name].drop_null().cast(pa.float64()).to_numpy(zero_copy_only=False)


def table(name: str, edges: np.ndarray, counts: np.ndarray) -> dict[str, object]:
    bins = range(len(counts))
    return {
        "column": [name for _ in bins],
        "bin": list(bins),
        "lower": edges[:-1],
        "upper": edges[1:],
        "row_count": counts,
        "share": counts / max(counts.sum(), 1),
    }


if __name__ == "__main__":
    main()
