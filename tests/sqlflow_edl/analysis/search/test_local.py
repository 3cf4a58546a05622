"""Candidates around the portfolio."""

from __future__ import annotations

import pytest

from sqlflow_edl.analysis.search import local
from sqlflow_edl.analysis.search.local import REGIONS, Axis, coordinates, further_candidates
from sqlflow_edl.analysis.search.portfolio import PORTFOLIO, Variant

ALL = further_candidates(PORTFOLIO, local.COUNT)


def test_the_points_are_different_candidates_of_the_models_of_the_portfolio_in_turn() -> None:
    assert len(ALL) == local.COUNT
    shown = {(each.family, each.framework, *sorted(each.attributes.items())) for each in (*ALL, *PORTFOLIO)}
    assert len(shown) == len(ALL) + len(PORTFOLIO)
    assert {(each.family, each.framework) for each in ALL[:6]} == {
        (region.model.family, region.model.framework) for region in REGIONS
    }


def test_only_models_that_are_tried_have_points() -> None:
    trees = [each for each in PORTFOLIO if each.framework == "xgboost"]
    assert {each.framework for each in further_candidates(trees, local.COUNT)} == {"xgboost"}
    assert len(further_candidates(PORTFOLIO, 5)) == 5


@pytest.mark.parametrize(
    "axis", [axis for region in REGIONS for axis in region.axes], ids=lambda axis: axis.name
)
def test_values_lie_between_the_ends_and_have_their_place(axis: Axis) -> None:
    for place in (0.0, 0.3, 0.999):
        value = axis.value(place)
        if isinstance(value, int | float):
            assert axis.low <= value <= axis.high
            assert axis.place(value) == pytest.approx(place, abs=0.15)
        else:
            assert abs(axis.place(value) - place) < 1 / len(axis.choices)


def test_a_point_has_the_places_of_its_own_settings_and_the_middle_for_others() -> None:
    trees = Variant("BoostedTrees", "xgboost", {"optimizer.learning_rate": 0.1, "model.max_depth": 2})
    assert coordinates(trees) == ("BoostedTrees of xgboost", "", 1.0, 0.0, *[0.5] * 8)
    wide = Variant("DNN", "torch", {"model.dropout": 0.4})
    assert coordinates(wide) == ("DNN of torch", "", *[0.5] * 8, 1.0, 0.5)
    assert coordinates(Variant("Linear", "torch"))[2:] == (0.5,) * 10


def test_all_points_of_candidates_have_the_same_dimensions() -> None:
    assert len({len(coordinates(each)) for each in (*ALL, *PORTFOLIO)}) == 1
