"""Figures as tables."""

from __future__ import annotations

from edl.data.metric_tables import importances, one_row


def test_a_figure_that_is_not_defined_is_null() -> None:
    assert one_row({"loss": 0.5, "auc": None}).to_pylist() == [{"loss": 0.5, "auc": None}]


def test_figures_of_two_labels_are_two_columns_whatever_their_names() -> None:
    found = one_row({"loss": 1.0, "a.balanced_accuracy": 0.25, "a_balanced.accuracy": 0.5})
    assert found.to_pylist() == [{"loss": 1.0, "a_balanced_accuracy": 0.25, "a_balanced_accuracy_2": 0.5}]


def test_the_most_important_column_comes_first() -> None:
    found = importances({"a": 1.0, "b": 3.0, "c": None}).to_pylist()
    assert found == [
        {"feature": "b", "importance": 3.0, "share": 0.75},
        {"feature": "a", "importance": 1.0, "share": 0.25},
        {"feature": "c", "importance": None, "share": 0.0},
    ]


def test_of_columns_that_change_nothing_none_has_a_share() -> None:
    assert importances({"a": 0.0}).to_pylist() == [{"feature": "a", "importance": 0.0, "share": None}]
