"""Selection of an ensemble: which models are in it, and with which share."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.arrays import Array
from edl.metrics import AUC, R2, RMSE, LogLoss, TruePositives
from edl.run.search.selection import Measure, select

NUMBERS = np.arange(8.0).reshape(-1, 1)
BY_NUMBER = Measure(RMSE(), NUMBERS)


def off_by(*errors: float) -> Array:
    """Scores with these errors, which are repeated over the rows."""
    return NUMBERS + np.resize(np.asarray(errors), len(NUMBERS)).reshape(-1, 1)


def error_of(weights: Mapping[int, float], scores: Mapping[int, Array], measure: Measure) -> float:
    mean = np.sum([weight * scores[number] for number, weight in weights.items()], axis=0)
    return measure.error(measure.value(mean))


def test_the_best_model_stays_alone_where_none_helps_it() -> None:
    assert select({0: off_by(2), 1: off_by(1), 2: off_by(3)}, BY_NUMBER, 5) == {1: 1.0}


def test_models_share_the_ensemble_if_their_errors_cancel_each_other() -> None:
    weights = select({0: off_by(1), 1: off_by(-1), 2: off_by(9)}, BY_NUMBER, 5)
    assert weights == {0: 0.5, 1: 0.5}


def test_a_model_that_helps_less_has_a_smaller_share() -> None:
    scores = {0: off_by(1), 1: off_by(-3)}
    weights = select(scores, BY_NUMBER, 5)
    assert weights == {0: 0.75, 1: 0.25}
    assert error_of(weights, scores, BY_NUMBER) == 0


def test_a_gain_that_is_lost_in_rounding_makes_no_ensemble_larger() -> None:
    assert select({0: off_by(1), 1: off_by(1 - 1e-9)}, BY_NUMBER, 5) == {1: 1.0}


def test_equal_models_are_not_averaged_and_the_first_one_is_taken() -> None:
    assert select({2: off_by(1), 1: off_by(1), 3: off_by(1)}, BY_NUMBER, 5) == {1: 1.0}


@pytest.mark.parametrize("most", [1, 2, 3, 6])
def test_there_are_never_more_members_than_allowed(most: int) -> None:
    draw = np.random.default_rng(5)
    scores = {number: NUMBERS + draw.normal(size=NUMBERS.shape) for number in range(12)}
    weights = select(scores, BY_NUMBER, most)
    assert 1 <= len(weights) <= most
    assert error_of(weights, scores, BY_NUMBER) <= error_of(select(scores, BY_NUMBER, 1), scores, BY_NUMBER)


def test_a_metric_may_be_better_where_it_is_higher() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1])
    measure = Measure(AUC(), labels)
    scores = {
        0: np.array([0.1, 0.7, 0.2, 0.6, 0.9, 0.8]).reshape(-1, 1),  # one pair is in the wrong order
        1: np.array([0.5, 0.6, 0.7, 0.4, 0.3, 0.2]).reshape(-1, 1),  # all of them are
    }
    assert select(scores, measure, 5) == {0: 1.0}
    scores[2] = np.array([0.7, 0.1, 0.2, 0.9, 0.6, 0.8]).reshape(-1, 1)
    weights = select(scores, measure, 5)
    assert weights == {0: 0.5, 2: 0.5}
    assert error_of(weights, scores, measure) == -1


def test_a_search_is_over_where_figures_show_no_difference_to_the_best() -> None:
    two, three = np.array([[0.0], [1], [1], [1]]), np.array([0, 1, 2, 2])
    assert Measure(RMSE(), NUMBERS).least_error == pytest.approx(1e-3 * NUMBERS.std())
    assert Measure(R2(), NUMBERS).least_error == Measure(AUC(), two).least_error == 5e-5 - 1
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    assert Measure(LogLoss(), two).least_error == pytest.approx(1e-3 * entropy)
    assert Measure(LogLoss(), three).least_error == pytest.approx(1e-3 * 1.5 * np.log(2))
    weighed = Measure(LogLoss(), three, np.array([0.0, 2, 1, 1]))
    assert weighed.least_error == pytest.approx(1e-3 * np.log(2))
    assert Measure(TruePositives(), two).least_error == -np.inf


def test_rows_count_by_their_weights() -> None:
    first_rows = np.array([1.0, 1, 1, 1, 0, 0, 0, 0])
    scores = {0: off_by(0, 0, 0, 0, 9, 9, 9, 9), 1: off_by(1)}
    assert select(scores, Measure(RMSE(), NUMBERS, first_rows), 5) == {0: 1.0}
    assert 1 in select(scores, BY_NUMBER, 5)


@pytest.mark.soak
@given(
    st.lists(st.lists(st.integers(-5, 5), min_size=8, max_size=8), min_size=1, max_size=6),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_models_does_not_matter_and_the_shares_are_one_in_sum(
    errors: list[list[int]], most: int, random: Random
) -> None:
    scores = {number: off_by(*each) for number, each in enumerate(errors)}
    weights = select(scores, BY_NUMBER, most)
    assert sum(weights.values()) == pytest.approx(1)
    assert list(weights.values()) == sorted(weights.values(), reverse=True)
    turned = list(scores)
    random.shuffle(turned)
    assert list(select({number: scores[number] for number in turned}, BY_NUMBER, most).items()) == list(
        weights.items()
    )
