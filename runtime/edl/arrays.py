"""Nested arrays: a program's features are an array, or a dict or tuple of arrays, with rows as the first dimension.

Lists of ids (`edl.Ragged`) may replace an array; frameworks get their counts (`plain`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from edl.errors import JobError
from edl.ragged import Ragged

Array = npt.NDArray[Any]
Features = Any  # Array | dict[str, Features] | tuple[Features, ...]


def map_arrays(function: Callable[[Any], Any], features: Features) -> Any:
    """Return the same structure with `function` applied to each array."""
    if isinstance(features, dict):
        return {key: map_arrays(function, value) for key, value in features.items()}
    if isinstance(features, tuple):
        return tuple(map_arrays(function, value) for value in features)
    return function(features)


def arrays(features: Features, path: str = "features") -> Iterator[tuple[str, Any]]:
    """Yield each array with its path expression, as in `features["dense"]`."""
    if isinstance(features, dict):
        for key, value in features.items():
            yield from arrays(value, f"{path}[{key!r}]")
    elif isinstance(features, tuple):
        for position, value in enumerate(features):
            yield from arrays(value, f"{path}[{position}]")
    else:
        yield path, features


def replace_lists(features: Features) -> Features:
    """Return the framework's input, with lists of ids replaced by the number of ids of each row."""
    return map_arrays(lambda array: array.counts if isinstance(array, Ragged) else array, features)


def pad_lists(features: Features) -> Features:
    """Return the input of an exported model, with lists of ids as arrays (`Ragged.padded`)."""
    return map_arrays(lambda array: array.pad() if isinstance(array, Ragged) else array, features)


def count_rows(features: Features) -> int:
    """Return the number of rows of the first array."""
    return next((len(array) for _, array in arrays(features)), 0)


def checked_features(
    features: Features, rows: int, by: str = "feed", *, exact: bool = False, texts: bool = False
) -> Features:
    """Return the features with every array as float32 or int64; with `exact`, float64 stays, with `texts`, objects.

    `by` is the function that returned them. Raises JobError that names an array without `rows` rows.
    """
    if isinstance(features, list):
        features = tuple(features)
    for path, array in arrays(features):
        _check(path, array, rows, by, texts=texts)
    if not any(True for _ in arrays(features)):
        raise JobError(
            f"{by} gives no features", hint="return (features, labels), features an array, dict or tuple"
        )
    return map_arrays(_same if exact else _narrow, features)


def checked_labels(
    labels: object,
    rows: int,
    by: str = "feed",
    *,
    ranking: bool = False,
    exact: bool = False,
    any_shape: bool = False,
) -> Array:
    """Return labels as float32 (n, k) or int64 (n,), of a ranking int64 (n, 2); with `exact`, float64 stays.

    `any_shape`: the program reshapes them itself. Raises JobError for others.
    """
    _check("labels", labels, rows, by)
    array = _same(labels) if exact else _narrow_numbers(labels)
    if any_shape:
        return array
    if not ranking and array.dtype.kind == "f" and array.ndim < 2:
        raise JobError(
            f"{by} gives labels of shape {array.shape}; numbers must be a column, (n, 1)",
            hint="a loss of (n,) and (n, 1) broadcasts to (n, n): reshape the labels with labels.reshape(-1, 1)",
        )
    if ranking:
        if array.dtype == np.int64 and array.shape[1:] == (2,):
            return array
        raise JobError(
            f"{by} gives labels of shape {array.shape}; those of a ranking are int64 of shape (n, 2)",
            hint="fc.ranking makes them of a relevance and a group",
        )
    if array.dtype == np.int64 and array.ndim != 1:
        raise JobError(f"{by} gives labels of shape {array.shape}; classes must be int64 of shape (n,)")
    return array


def checked_weights(weights: object, rows: int, by: str = "feed") -> Array | None:
    """Return weights as float32 (n,), or None. Raises JobError if that is impossible."""
    if weights is None:
        return None
    _check("weights", weights, rows, by)
    array = np.asarray(weights, dtype=np.float32)
    if array.ndim != 1:
        raise JobError(f"{by} gives weights of shape {array.shape}; they must be one number per row, (n,)")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise JobError(f"{by} gives weights that are negative or not finite", hint="0 leaves a row out")
    return array


def _check(path: str, array: object, rows: int, by: str, *, texts: bool = False) -> None:
    if not isinstance(array, np.ndarray | Ragged) or array.ndim == 0:
        hint = "arrays of NumPy, one row per row of the batch"
        raise JobError(f"{by} gives a {type(array).__name__} as {path}", hint=hint)
    if array.dtype.kind not in ("fiubO" if texts else "fiub"):
        raise JobError(f"{by} gives {path} of type {array.dtype}", hint="float32 for numbers, int64 for ids")
    if len(array) != rows:
        raise JobError(f"{by} gives {len(array)} rows as {path} for a batch of {rows}")


def _same(array: Any) -> Any:
    is_same = isinstance(array, Ragged) or array.dtype in (np.float64, np.object_)
    return array if is_same else _narrow_numbers(array)


def _narrow(array: Any) -> Any:
    is_same = isinstance(array, Ragged) or array.dtype == np.object_
    return array if is_same else _narrow_numbers(array)


def _narrow_numbers(array: Any) -> Array:
    if array.dtype.kind in "fb":
        return np.asarray(array, dtype=np.float32)
    return np.asarray(array, dtype=np.int64)
