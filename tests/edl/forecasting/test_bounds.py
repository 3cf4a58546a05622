"""Bounds of forecasts: the order of quantiles, their distance from the forecast, and no value below 0."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from edl.forecasting.bounds import bound_forecasts
from edl.spec.forecast import Forecast

PLAIN = Forecast("day", (), 7, 7, "1 day", 7)
QUANTILES = (0.1, 0.4, 0.5, 0.9)


def bound_scores(scores: list[float], scale: float = 10.0, **fields: Any) -> list[float]:
    forecast = msgspec.structs.replace(PLAIN, **fields)
    features = {"scale_dense": np.array([[100.0, scale]], dtype=np.float32)}
    [found] = bound_forecasts(forecast, QUANTILES[: len(scores) - 1], np.array([scores]), features)
    return found.tolist()


def test_a_model_of_an_earlier_version_has_no_bounds() -> None:
    assert bound_scores([-5.0, 3.0, 2.0, -5.0, -9.0]) == [-5.0, 3.0, 2.0, -5.0, -9.0]


def test_quantiles_are_in_order_and_apart_from_the_forecast() -> None:
    assert bound_scores([5.0, 6.0, 5.0, 5.5, 5.0], gap=0.01) == pytest.approx([5.0, 4.9, 4.9, 5.5, 5.1])
    assert bound_scores([5.0, 1.0, 4.0, 5.5, 9.0], gap=0.01) == [5.0, 1.0, 4.0, 5.5, 9.0]


def test_the_distance_is_that_of_doubles_for_large_values() -> None:
    low = bound_scores([1e9, 1e9], scale=1.0, gap=0.01)
    assert low[1] < low[0] == 1e9


def test_nothing_is_below_zero_if_no_value_is() -> None:
    low = bound_scores([-5.0, -9.0, -7.0, -5.0, -6.0], gap=0.01, non_negative=True)
    assert low == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.1])
    assert bound_scores([-5.0], non_negative=True) == [0.0]


def test_features_of_an_edited_program_may_have_no_scale() -> None:
    forecast = msgspec.structs.replace(PLAIN, gap=0.01)
    scores = np.array([[1.0, 2.0]])
    assert bound_forecasts(forecast, (0.1,), scores, np.zeros((1, 3))) is scores
