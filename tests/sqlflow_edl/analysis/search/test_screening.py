"""Columns of a wide table that a search keeps: those by which the label differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sqlflow_edl.analysis.search.screening import choose_columns

ROWS = 400
DRAW = np.random.default_rng(7)
X = DRAW.normal(size=ROWS)
GROUP = DRAW.integers(0, 5, ROWS)
USEFUL: dict[str, Any] = {
    "linear": X + DRAW.normal(0, 0.5, ROWS),
    "missing": [None if value > 0 else 1.0 for value in X],
    "group": [f"g{value}" for value in GROUP],
}
NOISE: dict[str, Any] = {f"noise{number}": DRAW.normal(size=ROWS) for number in range(50)}
NOISE |= {
    "id": [f"id {number}" for number in range(ROWS)],
    "one": np.ones(ROWS),
    "null": pa.nulls(ROWS),
    "nan": np.full(ROWS, np.nan),
}


@pytest.mark.parametrize(
    "label",
    [X + GROUP, np.exp(3 * (X + GROUP)), (X + GROUP > 2), [f"c{int(value)}" for value in X + GROUP]],
    ids=["number", "heavy tail", "boolean", "text"],
)
def test_the_columns_by_which_the_label_differs_are_kept(label: Any) -> None:
    table = pa.table({**NOISE, **USEFUL, "y": label})
    assert choose_columns(table, "y", {"y"}, 4) == [*USEFUL, "y"]


def test_a_relation_in_no_order_is_found() -> None:
    table = pa.table({**NOISE, "linear": USEFUL["linear"], "y": np.abs(X)})
    assert choose_columns(table, "y", {"y"}, 2) == ["linear", "y"]


def test_columns_with_another_part_stay_and_lists_are_not_judged() -> None:
    table = pa.table({**NOISE, "list": [[1, 2]] * ROWS, "y": X})
    found = choose_columns(table, "y", {"y", "null"}, 3)
    assert found == ["null", "list", "y"]


def test_a_table_without_labels_keeps_as_many_columns() -> None:
    table = pa.table({**NOISE, "y": pa.nulls(ROWS, pa.float64())})
    assert len(choose_columns(table, "y", {"y"}, 5)) == 5
