"""Column functions of a user's own: `fit` over the training rows, `transform` over the rows of a batch.

`edl.program.column_functions` finds, checks and imports the classes; a process that uses them has imported it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from edl.errors import JobError, SemanticError
from edl.features.arrays import Floats, numbers
from edl.spec import Function

LONGEST_STATE = 1 << 18  # characters of JSON


class OwnFunction(Protocol):
    """Instance of a class of a user's own."""

    def fit(self, rows: pa.Table) -> Any:
        """Return the state: None, numbers, texts, lists, dicts and arrays of NumPy."""

    def transform(self, rows: pa.Table, state: Any) -> Any:
        """Return a number for each row: an array of NumPy or Arrow, or a list."""


Make = Callable[[Function], OwnFunction]
_makers: list[Make] = []


def install(make: Make) -> None:
    """Set the function that makes an instance of the class that a `Function` names."""
    _makers[:] = [make]
    _instance.cache_clear()


def fit(function: Function, rows: pa.Table) -> str:
    """Return the state of the function for the training rows, as JSON. Raises JobError if it has no such form."""
    result = _instance(function).fit(rows)
    try:
        state = msgspec.json.encode(result, enc_hook=_plain).decode()
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise JobError(
            f"{function.name}.fit returned a state that is no JSON ({error})",
            hint="return numbers, texts, lists, dicts of them, or arrays of NumPy",
        ) from None
    if len(state) > LONGEST_STATE:
        raise JobError(
            f"{function.name}.fit returned a state of {len(state):,} characters; {LONGEST_STATE:,} are possible"
        )
    return state


def values(function: Function, rows: pa.Table) -> Floats:
    """Return the numbers of the function, float64 (n,), NaN for NULL. Raises JobError for anything else."""
    if function.state is None:
        raise JobError(f"{function.name} has no state: it was not fitted")
    instance = _instance(function)
    if not rows.num_rows:
        return np.empty(0)
    result = instance.transform(
        rows, msgspec.json.decode(function.state)
    )  # its own copy, which it may change
    try:
        column = result if isinstance(result, pa.Array) else pa.array(np.asarray(result))
        if isinstance(result, pa.ChunkedArray):
            column = result.combine_chunks()
        column_values = numbers(column, function.name)
    except (pa.ArrowException, SemanticError, TypeError, ValueError) as error:
        raise JobError(f"{function.name}.transform returned no column of numbers: {error}") from None
    if len(column_values) != rows.num_rows:
        raise JobError(
            f"{function.name}.transform returned {len(column_values):,} values for {rows.num_rows:,} rows"
        )
    return column_values


@lru_cache(maxsize=256)
def _instance(function: Function) -> OwnFunction:
    if not _makers:
        raise JobError(f"this process cannot use {function.name}")
    return _makers[0](function)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value.to_pylist()
    raise TypeError(f"a {type(value).__name__} is among it")
