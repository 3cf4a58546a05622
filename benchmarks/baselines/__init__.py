"""Baselines: the same training in the style of the frameworks' own guides; each file is a program.

    python -m benchmarks.baselines.keras_fit JOB EPOCHS

JOB is a job folder with pinned rows and the generated program. The baselines take the rows and the transforms
from there, so both sides see the same numbers. Each prints one line of JSON: the rows of an epoch and the
seconds of every epoch, the first with its tracing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Arrays = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]


class Categories(NamedTuple):
    """Categories of the rows.

    ids: int64 (n,) of each category. sizes: number of ids and vector width of each.
    """

    ids: list[npt.NDArray[np.int64]]
    sizes: list[tuple[int, int]]


class Embedded(NamedTuple):
    """Training data of a model with embeddings: numbers (n, k), categories, labels (n, 1).

    linear: categories with a weight for each id, summed up; empty for a plain network. pairs: True for DeepFM's
    products.
    """

    numbers: npt.NDArray[np.float32]
    deep: Categories
    linear: Categories
    labels: npt.NDArray[np.float32]
    hidden_units: tuple[int, ...]
    pairs: bool
    mean: float
    std: float

    @property
    def arrays(self) -> list[npt.NDArray[Any]]:
        """Inputs of the model: numbers, ids of `deep`, ids of `linear`."""
        return [self.numbers, *self.deep.ids, *self.linear.ids]


def training_arrays(job: Path) -> Arrays:
    """Return the job's training rows: features (n, k) and labels (n, 1), both float32."""
    _, parts = _fed(job)
    features = np.concatenate([features["dense"] for features, _ in parts])
    return features, np.concatenate([labels for _, labels in parts])


def embedded(job: Path) -> Embedded:
    """Return the job's training rows and the shape of its model."""
    loaded, parts = _fed(job)
    spec = loaded.spec
    features = loaded.module.FEATURES
    pairs = spec.model.name.startswith("DeepFM")
    combined = len(spec.inputs) > 1
    deep = features["deep"] if combined else features
    return Embedded(
        _joined(parts, next(entry.name for entry in deep.entries if entry.kind == "dense")),
        _categories(parts, deep.entries),
        _categories(parts, features["wide"].entries if combined else deep.entries if pairs else ()),
        np.concatenate([labels for _, labels in parts]).reshape(-1, 1).astype(np.float32),
        tuple(spec.model.params["hidden_units"]),
        pairs,
        getattr(spec.label, "mean", 0.0),
        getattr(spec.label, "std", 1.0),
    )


def _categories(parts: list[Any], entries: Iterable[Any]) -> Categories:
    found = [entry for entry in entries if entry.kind == "category"]
    ids = [_joined(parts, entry.name) for entry in found]
    return Categories(ids, [(entry.num_ids, entry.width) for entry in found])


def _joined(parts: list[Any], name: str) -> npt.NDArray[Any]:
    return np.concatenate([features[name] for features, _ in parts])


def _fed(job: Path) -> tuple[Any, list[Any]]:
    """Return the job's program, and the results of its `feed` for the training rows."""
    from edl import program
    from edl.data import open_reader
    from edl.data.pinned import read_pinned

    loaded = program.load(job / "program")
    reader = open_reader(read_pinned(job / "rows"), job / "rows")
    return loaded, [
        loaded.call("feed", batch, "train") for batch in reader.read(0, loaded.spec.rows.training)
    ]


def main(train: Callable[[Arrays, int, int], list[float]]) -> None:
    """Run `train(arrays, epochs, batch_size)`, which returns the seconds of each epoch."""
    job, epochs, batch_size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    arrays = training_arrays(job)
    print(json.dumps({"rows": len(arrays[0]), "seconds": train(arrays, epochs, batch_size)}))


def main_embedded(train: Callable[[Embedded, int, int], list[float]]) -> None:
    """Run `train(rows, epochs, batch_size)`, which returns the seconds of each epoch."""
    job, epochs, batch_size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rows = embedded(job)
    print(json.dumps({"rows": len(rows.labels), "seconds": train(rows, epochs, batch_size)}))
