"""Widths of intervals from rows whose scores are known, as at the end of a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.data.readers import BatchReader
from edl.evaluation.widths import MOST_ROWS
from edl.run.intervals import measure_widths_of_scores
from edl.spec import Calibration, Residuals

FIRST = 50  # rows before those that are scored


def measure_residuals(rows: int, *, uneven: bool, weights: Any = None) -> Residuals:
    draw = np.random.default_rng(1)
    x = draw.normal(size=FIRST + rows)
    reader = BatchReader(pa.RecordBatch.from_pydict({"x": x, "other": x}))
    scores = draw.normal(size=(rows, 1))
    errors = draw.normal(size=rows) * (np.exp(x[FIRST:]) if uneven else 1.0)
    labels = scores + errors[:, np.newaxis]
    before = Residuals(rows, (1.0, 2.0))
    found = measure_widths_of_scores(reader, FIRST, ["x"], scores, labels, weights, before)
    assert isinstance(found, Residuals)
    assert (found.rows, found.quantiles) == (before.rows, before.quantiles)
    return found


@pytest.mark.parametrize("rows", [400, 3 * MOST_ROWS])
def test_errors_that_follow_a_column_have_widths_of_at_most_so_many_rows(rows: int) -> None:
    scaled = measure_residuals(rows, uneven=True).scaled
    assert scaled is not None
    assert scaled.rows == min(rows, MOST_ROWS)
    [term] = [term for term in scaled.widths.columns if term.column == "x"]
    assert np.polyfit(term.places, term.logs, 1)[0] == pytest.approx(1, abs=0.3)


def test_even_errors_and_few_rows_have_one_width() -> None:
    assert measure_residuals(400, uneven=False).scaled is None
    assert measure_residuals(99, uneven=True).scaled is None


def test_weights_belong_to_their_rows() -> None:
    weights = (np.arange(3 * MOST_ROWS) % 2).astype(np.float32)
    scaled = measure_residuals(3 * MOST_ROWS, uneven=True, weights=weights).scaled
    assert scaled is not None
    assert scaled.rows == pytest.approx(MOST_ROWS / 2, abs=8)


def test_classes_have_no_widths() -> None:
    reader = BatchReader(pa.RecordBatch.from_pydict({"x": np.zeros(200)}))
    zeros = np.zeros((200, 2))
    assert measure_widths_of_scores(reader, 0, ["x"], zeros, zeros, None, Calibration()) == Calibration()
