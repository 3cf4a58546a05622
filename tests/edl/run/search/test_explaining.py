"""Importances at the end of a search: how many rows are explained, for how long, and for which model."""

from __future__ import annotations

import msgspec
import pytest

from edl.jobs.outcome import Outcome
from edl.run.search import explaining
from edl.spec import Importances, Rows, Search, mean_importances
from tests.edl.models.conftest import SPEC


def test_models_are_explained_in_as_many_at_once_as_there_are_slots() -> None:
    assert explaining.seconds_of_each(3, [4, 7, 9], 2) == 1.5, "two at once, and then the third"


def test_the_more_columns_there_are_the_fewer_rows_are_explained() -> None:
    assert [explaining.rows_of_walk(columns) for columns in (0, 10, 100, 1000, 5000)] == [500, 500, 300, 8, 8]


def test_test_rows_are_explained_or_without_any_the_validation_rows() -> None:
    assert explaining.held_out(Rows(True, 100, 70, 20), 100) == (90, 100)
    assert explaining.held_out(Rows(True, 100, 80, 20), 100) == (80, 100)


def test_the_importances_of_an_ensemble_are_the_weighted_mean_of_its_members() -> None:
    found = mean_importances([(0.75, {"x": 1.0, "y": 4.0}), (0.25, {"x": 2.0, "z": 4.0})])
    assert found == {"y": 3.0, "x": 1.25, "z": 1.0}
    assert list(found) == ["y", "x", "z"]


def test_a_model_that_was_not_explained_in_time_is_left_out() -> None:
    spec = msgspec.structs.replace(SPEC, search=Search((), "rmse", test=5))
    outcome = Outcome("explain", 40, 0.1, {"x": 2.0, "y": None})
    found = explaining.importances(spec, {1: 0.9, 2: 0.1}, {2: outcome})
    assert found == Importances({"x": pytest.approx(2.0), "y": 0.0}, 40, "test")
    assert explaining.importances(spec, {1: 1.0}, {}) is None
