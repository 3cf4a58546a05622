"""Importances at the end of a search: how many rows are explained, for how long, and for which model."""

from __future__ import annotations

import msgspec
import pytest

from edl.jobs.outcome import Outcome
from edl.run.search import explaining
from edl.spec import Importances, Rows, Search, mean_importances
from tests.edl.models.conftest import SPEC


def search(**changes: float) -> Search:
    return msgspec.structs.replace(Search((), "rmse"), **changes)


def test_importances_take_a_twentieth_of_the_time_and_at_most_five_seconds() -> None:
    assert explaining.budget(search(time_limit=60.0)) == 3
    assert explaining.budget(search(time_limit=300.0)) == 5
    assert explaining.budget(search()) == 5
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
    spec = msgspec.structs.replace(SPEC, search=search(test=5))
    outcome = Outcome("explain", 40, 0.1, {"x": 2.0, "y": None})
    found = explaining.importances(spec, {1: 0.9, 2: 0.1}, {2: outcome})
    assert found == Importances({"x": pytest.approx(2.0), "y": 0.0}, 40, "test")
    assert explaining.importances(spec, {1: 1.0}, {}) is None
