"""Reader of a PyTorch Dataset or DataLoader, which a program may offer in place of `feed`, into arrays.

A Dataset is wrapped in a DataLoader of the job's batch size; a DataLoader is used as it is, with any batch size.
Nothing here consumes PyTorch's global random numbers, which belong to the training step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler, default_collate

from edl.arrays import arrays, count_rows
from edl.errors import JobError
from edl.program import Mode
from edl.ragged import Ragged


def load(data: object, rows: int, size: int, mode: Mode, by: str) -> tuple[Any, Any, Any]:
    """Return features, labels and weights of all rows of `data`, in its order; labels and weights are None in
    prediction.

    `size` is the minibatch size, and `by` names the source of the data in errors. Raises JobError if it is no
    Dataset or DataLoader, has another number of rows than `rows`, or its items are not (features, label) or
    (features, label, weight).
    """
    parts: list[tuple[Any, ...]] = []
    loaded = 0
    for batch in _loader(data, size, mode, by):
        parts.append(_arrays_of(batch, mode, by))
        loaded += count_rows(parts[-1][0])
        if loaded > rows:
            raise JobError(f"{by} gives more than the {rows} rows of its range", hint=_EXACTLY)
    if loaded != rows:
        raise JobError(f"{by} gives {loaded} rows of the {rows} of its range", hint=_EXACTLY)
    features, labels, *weights = (_join_arrays(same) for same in zip(*parts, strict=True))
    return features, labels, weights[0] if weights else None


_EXACTLY = "each row of the range once, in order: no drop_last, no sampler that leaves rows out"


def _loader(data: object, size: int, mode: Mode, by: str) -> DataLoader[Any]:
    if isinstance(data, DataLoader):
        if isinstance(data.sampler, RandomSampler):
            raise JobError(
                f"{by} gives a DataLoader that shuffles",
                hint="leave shuffle out: rows to train on are permuted by the job's seed, all others keep their order",
            )
        loader = data
    elif isinstance(data, Dataset):
        loader = DataLoader(data, size, collate_fn=_features_alone if mode == "predict" else None)
    else:
        raise JobError(
            f"{by} gives a {type(data).__name__}",
            hint="it must give a Dataset, an IterableDataset or a DataLoader of torch.utils.data",
        )
    if loader.generator is None:
        loader.generator = torch.Generator()  # else each pass consumes a global random number
    return loader


def _features_alone(items: Sequence[Any]) -> tuple[Any, None]:
    return default_collate([features for features, *_ in items]), None


def _arrays_of(batch: object, mode: Mode, by: str) -> tuple[Any, ...]:
    """Return one batch of a DataLoader as arrays."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        described = f"{len(batch)} things" if isinstance(batch, tuple | list) else f"a {type(batch).__name__}"
        raise JobError(
            f"{by} gives {described} a row; an item is (features, label) or (features, label, weight)",
            hint="in the mode predict the label may be None",
        )
    features, *rest = (_map(_array, part) for part in batch)
    for path, value in arrays(features):
        if not isinstance(value, np.ndarray | Ragged):
            raise JobError(
                f"{by} gives a {type(value).__name__} as {path}", hint="numbers, arrays or tensors"
            )
    return (features, None) if mode == "predict" else (features, *rest)


def _map(function: Callable[[Any], Any], value: Any) -> Any:
    """Map the tensors of a batch; collating turns tuples into lists, and features are tuples."""
    if isinstance(value, dict):
        return {key: _map(function, item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_map(function, item) for item in value)
    return function(value)


def _array(value: Any) -> Any:
    return value.numpy(force=True) if isinstance(value, torch.Tensor) else value


def _join_arrays(parts: Sequence[Any]) -> Any:
    """Concatenate arrays of the same structure. Other values stay as they are, to be named in errors."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: _join_arrays([part[key] for part in parts]) for key in first}
    if isinstance(first, tuple):
        return tuple(_join_arrays(group) for group in zip(*parts, strict=True))
    if isinstance(first, Ragged):
        return Ragged.concatenate(parts)
    return np.concatenate(parts) if isinstance(first, np.ndarray) else first
