"""Pairs of answers, and the one table of tolerances by which they are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from edl.errors import SQLFlowError
from edl.models.archive import Archive


@dataclass(frozen=True)
class Tolerance:
    """relative: to the size of the expected value; absolute: in units of the spread of all expected values."""

    relative: float
    absolute: float
    why: str


TOLERANCES: dict[str, Tolerance] = {
    "exact": Tolerance(0, 0, "the same operations on the same numbers in the same order: bitwise"),
    "ways": Tolerance(1e-6, 1e-6, "other libraries add single precision numbers in another order"),
    "batches": Tolerance(
        1e-5, 1e-6, "a matrix product of other shape adds single precision numbers in another order"
    ),
    "doubles": Tolerance(1e-9, 1e-9, "sums of doubles in another order"),
    "singles": Tolerance(
        2e-5, 2e-5, "the model holds single precision numbers; sums of them in another order"
    ),
    "resolution": Tolerance(
        0, 0.01, "the label and its model may be wrong by a hundredth of the label's spread"
    ),
    "workers": Tolerance(
        0.25,
        0.05,
        "splits near the least rows of a leaf may differ, as docs/trees.md says, and so may bundles",
    ),
    "noise": Tolerance(0, 3.0, "means over ten seeds within three standard errors of their difference"),
    "score": Tolerance(
        0, 0.1, "another form of the same information: the share of the variance or accuracy, within 0.1"
    ),
}


@dataclass(frozen=True)
class Refusal:
    """An error of the product, which both sides of a pair must then be."""

    message: str


@dataclass(frozen=True)
class Fitted:
    """A model with the figures of its training."""

    weights: Mapping[str, np.ndarray]
    figures: Mapping[str, float | None]
    archive: Archive = field(compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Pair:
    """Two answers that must be equal within a row of TOLERANCES; what: which of several of one input."""

    first: Any
    second: Any
    what: str = ""
    tolerance: str = ""  # by default the relation's own


def answer(ask: Callable[[], Any]) -> Any:
    """The answer, or the error of the product in its place; any other exception is a fault by itself."""
    try:
        return ask()
    except SQLFlowError as error:
        return Refusal(str(error))


def difference(first: Any, second: Any, tolerance: Tolerance) -> str:
    """Describe the first difference, or return an empty text."""
    if isinstance(first, Refusal) or isinstance(second, Refusal):
        if isinstance(first, Refusal) and isinstance(second, Refusal):
            return ""
        return f"{_short(first)}\nbut {_short(second)}"
    if isinstance(first, Fitted):
        return _of_mappings(first.figures, second.figures, tolerance) or _of_mappings(
            first.weights, second.weights, tolerance
        )
    if isinstance(first, pa.Table | pa.RecordBatch):
        return _of_tables(first, second, tolerance)
    if isinstance(first, Mapping):
        return _of_mappings(first, second, tolerance)
    if isinstance(first, np.ndarray):
        return _of_arrays(first, second, tolerance)
    if isinstance(first, float) and isinstance(second, float | int):
        return _of_arrays(np.array([first]), np.array([second], np.float64), tolerance)
    return "" if first == second else _of_sequences(first, second)


def _of_sequences(first: Any, second: Any) -> str:
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        if len(first) != len(second):
            return f"{len(first)} items\nbut {len(second)}"
        for at, (one, other) in enumerate(zip(first, second, strict=True)):
            if one != other:
                return f"item {at}: {_short(one)}\nbut {_short(other)}"
    return f"{_short(first)}\nbut {_short(second)}"


def _of_mappings(first: Mapping[str, Any], second: Mapping[str, Any], tolerance: Tolerance) -> str:
    if {*first} != {*second}:
        return f"{sorted(first)}\nbut {sorted(second)}"
    for name in sorted(first):
        if found := difference(first[name], second[name], tolerance):
            return f"{name}: {found}"
    return ""


def _of_tables(first: pa.Table, second: pa.Table, tolerance: Tolerance) -> str:
    if first.schema.names != second.schema.names:
        return f"columns {first.schema.names}\nbut {second.schema.names}"
    if first.num_rows != second.num_rows:
        return f"{first.num_rows} rows\nbut {second.num_rows}"
    for name in first.schema.names:
        one, other = first[name], second[name]
        if pa.types.is_floating(one.type) and pa.types.is_floating(other.type):
            if one.is_null().to_pylist() != other.is_null().to_pylist():
                return f"{name}: NULL in rows {_nulls(one)}\nbut {_nulls(other)}"
            numbers = [
                each.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
                for each in _plain(one, other)
            ]
            found = _of_arrays(*numbers, tolerance)
        else:
            found = (
                ""
                if one.to_pylist() == other.to_pylist()
                else _of_sequences(one.to_pylist(), other.to_pylist())
            )
        if found:
            return f"{name}: {found}"
    return ""


def _plain(*columns: Any) -> list[pa.Array]:
    return [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns]


def _nulls(column: Any) -> list[int]:
    return [at for at, is_null in enumerate(column.is_null().to_pylist()) if is_null][:5]


def _of_arrays(first: np.ndarray, second: np.ndarray, tolerance: Tolerance) -> str:
    if first.shape != second.shape:
        return f"shape {first.shape}\nbut {second.shape}"
    if not (tolerance.relative or tolerance.absolute) or first.dtype.kind not in "fc":
        same = first == second
        if first.dtype.kind == "f":
            same = (same & (np.signbit(first) == np.signbit(second))) | (np.isnan(first) & np.isnan(second))
    else:
        one, other = first.astype(np.float64), second.astype(np.float64)
        finite = one[np.isfinite(one)]
        spread = float(finite.max() - finite.min()) if finite.size > 1 else 0.0
        allowed = tolerance.relative * np.abs(one) + tolerance.absolute * (spread or 1.0)
        with np.errstate(invalid="ignore", over="ignore"):
            same = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= allowed)
    if same.all():
        return ""
    at = int(np.flatnonzero(~same.ravel())[0])
    where = f"at {at}: " if first.size > 1 else ""
    return f"{where}{first.ravel()[at]!r}\nbut {second.ravel()[at]!r}"


def _short(value: Any) -> str:
    if isinstance(value, Refusal):
        return f"error: {value.message}"
    if isinstance(value, Fitted):
        figures = ", ".join(
            f"{name} {value:.4g}" for name, value in value.figures.items() if value is not None
        )
        return f"a model: {figures}"
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    text = repr(value) if not isinstance(value, pa.Table) else f"rows: {value.to_pylist()[:3]}"
    return text if len(text) < 400 else text[:400] + " …"
