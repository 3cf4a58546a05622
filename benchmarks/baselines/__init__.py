"""The same training as the frameworks' own guides write it; each file is a program of its own.

    python -m benchmarks.baselines.keras_fit JOB EPOCHS

JOB is a job folder with pinned rows and the program that we generated; the baselines take the rows and the transforms
from there, so both sides see the same numbers. Each prints one line of JSON: the rows of an epoch and the seconds of
every epoch, the first with its tracing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

Arrays = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]


def training_arrays(job: Path) -> Arrays:
    """The job's training rows: features (n, k) and labels (n, 1), both float32."""
    from edl import program
    from edl.data import open_reader
    from edl.data.pinned import read_pinned

    loaded = program.load(job / "program")
    reader = open_reader(read_pinned(job / "rows"), job / "rows")
    parts = [loaded.call("feed", batch, "train") for batch in reader.read(0, loaded.spec.rows.training)]
    features = np.concatenate([features["dense"] for features, _ in parts])
    return features, np.concatenate([labels for _, labels in parts])


def main(train: Callable[[Arrays, int, int], list[float]]) -> None:
    """Run `train(arrays, epochs, batch_size)`, which gives the seconds of each epoch."""
    job, epochs, batch_size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    arrays = training_arrays(job)
    print(json.dumps({"rows": len(arrays[0]), "seconds": train(arrays, epochs, batch_size)}))
