"""Features of a few rows as vectors, as `edl.frameworks.torch.layers.Concatenated` makes them in a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.errors import SemanticError
from edl.features.transform import Entry, Features


def compute_vectors(features: Features, batch: pa.RecordBatch) -> npt.NDArray[np.float32]:
    """Return the features of the rows, float32 (rows, features.width): numbers, encoded numbers and one-hot categories.

    Raises SemanticError for a feature with numbers that a model learns.
    """
    arrays = features.transform(batch)
    parts = [_vector(entry, arrays[entry.name]) for entry in features.entries]
    return np.concatenate(parts, axis=1, dtype=np.float32)


def _vector(entry: Entry, array: Any) -> npt.NDArray[np.float32]:
    if entry.kind == "dense":
        return np.asarray(array, np.float32)
    if entry.kind == "positions":
        columns, first = entry.encodings
        return np.asarray((array[:, columns] - np.asarray(first, np.float32)).clip(0, 1), np.float32)
    if entry.kind == "category" and not entry.feature.dim:
        return np.asarray(np.equal.outer(array, np.arange(entry.num_ids)), np.float32)
    raise SemanticError(f"{entry.feature} has numbers that a model learns, so a row of it is no vector")
