"""Click log for the baselines: its columns in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IDS = 100_000  # number of ids of each column
DIM = 8
HIDDEN_UNITS = (128, 64)


class Clicks(NamedTuple):
    """Columns in memory. ids: int64 (n,) of each column. clicks: float32 (n, 1)."""

    ids: list[npt.NDArray[np.int64]]
    clicks: npt.NDArray[np.float32]


def main_clicks(train: Callable[[Clicks, int, int], list[float]]) -> None:
    """Run `train(rows, epochs, batch_size)`, which returns the seconds of each epoch, on a job's rows."""
    from edl.data import open_reader
    from edl.data.pinned import read_pinned

    folder, epochs, batch_size = Path(sys.argv[1]) / "rows", int(sys.argv[2]), int(sys.argv[3])
    reader = open_reader(read_pinned(folder), folder)
    batches = list(reader.read(0, reader.rows))
    *ids, clicks = (
        np.concatenate([batch.column(name).to_numpy() for batch in batches]) for name in reader.schema.names
    )
    seconds = train(Clicks(ids, clicks.reshape(-1, 1).astype(np.float32)), epochs, batch_size)
    print(json.dumps({"rows": reader.rows, "seconds": seconds}))
