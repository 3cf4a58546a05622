"""Metrics and feature importances as tables."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from edl.data.names import unique_names


def one_row(figures: Mapping[str, float | None]) -> pa.RecordBatch:
    """Return one row with a column for each figure; the metric `cost.rmse` of one of several labels is `cost_rmse`.

    Two of one name, such as `a.balanced_accuracy` and `a_balanced.accuracy`, are numbered.
    """
    names = unique_names([name.replace(".", "_") for name in figures], taken=())
    return pa.RecordBatch.from_arrays(
        [pa.array([value], type=pa.float64()) for value in figures.values()], names=names
    )


def importances(figures: Mapping[str, float | None]) -> pa.RecordBatch:
    """Return a row for each column of a query, most important first: `feature`, `importance`, `share` of the sum."""
    names = sorted(figures, key=lambda name: -(figures[name] or 0.0))
    values = [figures[name] for name in names]
    total = sum(value or 0.0 for value in values)
    shares = [(value or 0.0) / total if total else None for value in values]
    return pa.RecordBatch.from_pydict(
        {
            "feature": pa.array(names, pa.string()),
            "importance": pa.array(values, pa.float64()),
            "share": pa.array(shares, pa.float64()),
        }
    )
