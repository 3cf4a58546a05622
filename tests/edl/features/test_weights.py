"""Weights of rows by a column."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl import features as fc
from edl.errors import SemanticError


def batch(values: list[Any], kind: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"w": pa.array(values, type=kind)})


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 0, 3], pa.int32()),
        ([1.0, 0.0, 3.0], pa.float64()),
        ([decimal.Decimal(n) for n in (1, 0, 3)], pa.decimal128(5, 1)),
    ],
)
@pytest.mark.parametrize("mode", ["train", "evaluate"])
def test_a_column_counts_relative_to_its_mean(values: list[Any], kind: pa.DataType, mode: fc.Mode) -> None:
    found = fc.weights("w", mean=2.0).transform(batch(values, kind), mode)
    assert found is not None
    assert found.dtype == np.float32
    assert found.tolist() == [0.5, 0, 1.5]


def test_a_prediction_needs_no_weights() -> None:
    assert fc.weights("w").transform(pa.RecordBatch.from_pydict({"x": [1]}), "predict") is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, None, math.nan], "the weight w is NULL or not finite in 2 of 3 rows"),
        ([math.inf], "the weight w is NULL or not finite in 1 of 1 rows"),
        ([1.0, -0.5], "the weight w is negative in 1 of 2 rows"),
        (["1", "2"], "w"),
    ],
)
def test_weights_that_mean_nothing_are_refused(values: list[Any], message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        fc.weights("w").transform(batch(values), "train")


def test_a_missing_column_is_named_with_the_nearest() -> None:
    with pytest.raises(SemanticError, match="no column weigt") as raised:
        fc.weights("weigt").transform(pa.RecordBatch.from_pydict({"weight": [1]}), "train")
    assert raised.value.hint == "did you mean weight?"
