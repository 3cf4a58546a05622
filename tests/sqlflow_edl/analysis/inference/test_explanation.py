"""EXPLAIN statements: their settings where nothing is written."""

from __future__ import annotations

from sqlflow_edl.analysis.inference.explanation import default_samples


def test_rows_of_many_columns_are_compared_with_fewer_rows() -> None:
    assert [default_samples(columns) for columns in (1, 100, 200, 800, 5000)] == [32, 32, 16, 4, 4]
