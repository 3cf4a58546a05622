"""Confusion matrices as grids."""

from __future__ import annotations

from sqlflow_edl.display.grid import grid

PAIRS = [
    ("no", "no", 40, 0.8),
    ("no", "yes", 10, 0.2),
    ("yes", "no", 0, None),
    ("yes", "yes", 0, None),
]


def test_a_matrix_has_a_line_for_each_true_class_and_a_column_for_each_predicted_one() -> None:
    found = grid("bought", PAIRS)
    assert found is not None
    assert [name for name, _ in found.columns] == ["bought: true \\ predicted", "no", "yes", "recall"]
    assert found.rows == [
        ["no", "40", "10", "80.0 %"],
        ["yes", "0", "0", ""],
        ["precision", "100.0 %", "0.0 %", ""],
    ]
    assert found.total == 50


def test_weights_are_counts_too() -> None:
    found = grid("c", [("a", "a", 1.5, 1.0)])
    assert found is not None
    assert (found.rows[0], found.total) == (["a", "1.5", "100.0 %"], 1.5)


def test_without_all_pairs_there_is_no_grid() -> None:
    assert grid("bought", PAIRS[:3]) is None
    assert grid("bought", [("a", "b", 1, 1.0)]) is None
