"""Relative widths of intervals, fitted to drawn errors whose size depends on the row, or does not."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.evaluation.widths import fit_widths, relative_widths
from edl.spec.residuals import ColumnWidths, ScaledErrors, Widths

ROWS = 1000


def drawn(seed: int = 0, rows: int = ROWS) -> tuple[pa.RecordBatch, Any]:
    """Rows with a number, a text and a date, and errors of size 1."""
    draw = np.random.default_rng(seed)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(each)) for each in draw.integers(0, 365, rows)]
    columns = {"x": draw.normal(size=rows), "kind": draw.choice(["a", "b", "c"], rows), "day": days}
    return pa.RecordBatch.from_pydict(columns), draw.normal(size=rows)


def fit(rows: pa.RecordBatch, errors: Any, weights: Any = None) -> ScaledErrors | None:
    predictions = np.linspace(0, 1, rows.num_rows)[:, np.newaxis]
    return fit_widths(rows, rows.schema.names, predictions, predictions + errors[:, np.newaxis], weights)


def widths_of(found: ScaledErrors | None, rows: pa.RecordBatch) -> Any:
    assert found is not None
    return relative_widths(found.widths, rows, np.linspace(0, 1, rows.num_rows))


def test_errors_of_one_size_have_one_width() -> None:
    assert [fit(*drawn(seed)) for seed in range(5)] == [None] * 5


@pytest.mark.parametrize("column", ["x", "kind", "day"])
def test_widths_follow_the_column_on_which_the_errors_depend(column: str) -> None:
    rows, errors = drawn()
    values = rows.column(column)
    size = {
        "x": lambda: np.exp(0.8 * values.to_numpy()),
        "kind": lambda: np.where(np.array(values.to_pylist()) == "b", 4.0, 1.0),
        "day": lambda: 0.5 + values.cast(pa.int32()).to_numpy() % 365 / 365,
    }[column]()
    widths = widths_of(fit(rows, size * errors), rows)
    assert np.corrcoef(np.log(widths), np.log(size))[0, 1] > 0.8
    assert np.median(widths) == pytest.approx(1, rel=0.01)


def test_scaled_errors_cover_their_share_of_other_rows() -> None:
    inside = []
    for seed in range(10):
        rows, errors = drawn(seed, 3 * ROWS)
        errors = errors * np.exp(rows.column("x").to_numpy())
        found = fit(rows.slice(0, ROWS), errors[:ROWS])
        assert found is not None
        widths = widths_of(found, rows.slice(ROWS))
        assert found.rows == ROWS
        inside.append(np.mean(np.abs(errors[ROWS:]) <= found.quantiles[int(0.9 * ROWS)] * widths))
    assert np.mean(inside) == pytest.approx(0.9, abs=0.01)


def test_null_and_other_texts_have_a_width_of_their_own() -> None:
    rows, errors = drawn()
    missing = np.arange(ROWS) % 5 == 0
    kinds = pa.array(np.where(missing, None, rows.column("kind").to_numpy(zero_copy_only=False)), pa.string())
    rows = pa.RecordBatch.from_arrays([rows.column("x"), kinds], names=["x", "kind"])
    found = fit(rows, np.where(missing, 5.0, 1.0) * errors)
    one = rows.slice(1, 1)
    other = pa.RecordBatch.from_arrays([one.column("x"), pa.array(["unseen"])], names=["x", "kind"])
    unknown = pa.RecordBatch.from_arrays([one.column("x"), pa.nulls(1)], names=["x", "kind"])
    assert widths_of(found, other) == widths_of(found, unknown)
    assert widths_of(found, other)[0] > 2.5 * widths_of(found, one)[0]


def test_a_column_of_another_type_counts_as_null() -> None:
    terms = (ColumnWidths("x", (0.0, 1.0), 0.5, (0.0, 2.0)), ColumnWidths("kind", (1.0,), -0.5, (), ("a",)))
    widths = Widths(terms, 0.0, -9.0, 9.0)
    rows = pa.RecordBatch.from_pydict({"x": ["1", "2"], "kind": [[1], [2]]})
    assert relative_widths(widths, rows, np.zeros(2)) == pytest.approx(np.exp([0.0, 0.0]))


def test_widths_stay_within_the_rows_that_they_were_fitted_to() -> None:
    widths = Widths((ColumnWidths("", (-4.0, 4.0), 0.0, (0.0, 1.0)),), 0.0, -1.0, 2.0)
    rows = pa.RecordBatch.from_pydict({"x": [0, 0, 0]})
    found = relative_widths(widths, rows, np.array([0.0, 0.5, 1.0]))
    assert found == pytest.approx(np.exp([-1.0, 0.0, 2.0]))


def test_rows_without_weight_have_no_part() -> None:
    rows, errors = drawn()
    weights = (np.arange(ROWS) % 3 > 0).astype(np.float64)
    found = fit(rows, np.where(weights > 0, np.exp(rows.column("x").to_numpy()), 100) * errors, weights)
    assert found is not None
    assert found.rows == weights.sum()
    assert found.quantiles[-1] < 20


@pytest.mark.parametrize("errors", [np.zeros(ROWS), np.full(ROWS, np.nan), np.arange(ROWS) % 3 == 0])
def test_errors_that_are_mostly_zero_or_unknown_have_one_width(errors: Any) -> None:
    assert fit(drawn()[0], errors.astype(np.float64)) is None


def test_few_rows_have_one_width() -> None:
    rows, errors = drawn(rows=99)
    assert fit(rows, errors * np.exp(rows.column("x").to_numpy())) is None
