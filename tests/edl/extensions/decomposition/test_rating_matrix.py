"""Alternating least squares against one regression after the other, and on held-out ratings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edl.extensions.decomposition import rating_matrix
from edl.extensions.decomposition.rating_matrix import FactorSettings, RatingRows, _solve_rows, factorize

USERS, ITEMS, RANK = 120, 60, 3


def make_ratings(seed: int, share: float = 0.4) -> tuple[Any, Any, Any]:
    """Return users, items and ratings of a matrix of low rank with biases and noise."""
    random = np.random.default_rng(seed)
    whole = random.normal(size=(USERS, RANK)) @ random.normal(size=(RANK, ITEMS)) / np.sqrt(RANK)
    whole += random.normal(size=USERS)[:, None] + random.normal(size=ITEMS)
    users, items = np.nonzero(random.random((USERS, ITEMS)) < share)
    ratings = whole[users, items] + random.normal(size=len(users)) / 10
    order = random.permutation(len(users))
    return users[order].astype(np.int32), items[order].astype(np.int32), ratings[order].astype(np.float32)


def predict(found: Any, users: Any, items: Any) -> Any:
    products = (found.users[users, :-1] * found.items[items, :-1]).sum(axis=1)
    return products + found.users[users, -1] + found.items[items, -1]


@pytest.mark.parametrize("weighted", [False, True])
def test_each_row_is_the_ridge_regression_of_its_ratings(
    weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rating_matrix, "_SEGMENT", 4)  # rows of several segments
    monkeypatch.setattr(rating_matrix, "_BATCH", 200)  # several batches and chunks
    users, items, ratings = make_ratings(1)
    random = np.random.default_rng(2)
    weights = random.exponential(size=len(users)).astype(np.float32) if weighted else None
    others = random.normal(size=(ITEMS, RANK + 1))
    settings = FactorSettings(RANK, 0.3, 1)
    found = np.zeros((USERS, RANK + 1))
    loss = _solve_rows(RatingRows.sort(users, items, ratings, weights, USERS), others, found, settings)

    squares = 0.0
    for user in range(USERS):
        of_user = users == user
        share = np.ones(of_user.sum()) if weights is None else weights[of_user].astype(np.float64)
        inputs = np.column_stack([others[items[of_user], :-1], np.ones(of_user.sum())])
        wanted = ratings[of_user] - others[items[of_user], -1]
        left = inputs.T @ (inputs * share[:, None]) + 0.3 * of_user.sum() * np.eye(RANK + 1)
        expected = np.linalg.solve(left, inputs.T @ (share * wanted))
        np.testing.assert_allclose(found[user], expected, rtol=1e-8, atol=1e-10)
        squares += (share * (inputs @ expected - wanted) ** 2).sum()
    assert loss == pytest.approx(squares / len(users))


def test_the_preferences_of_implicit_feedback_weigh_all_pairs() -> None:
    users, items, ratings = make_ratings(3)
    ratings = np.abs(ratings)
    others = np.random.default_rng(4).normal(size=(ITEMS, RANK + 1))
    settings = FactorSettings(RANK, 0.5, 1, alpha=7.0)
    found = np.zeros((USERS, RANK + 1))
    _solve_rows(RatingRows.sort(users, items, ratings, None, USERS), others, found, settings)

    for user in (0, 57):
        confidence, preference = np.ones(ITEMS), np.zeros(ITEMS)
        of_user = users == user
        confidence[items[of_user]] += 7.0 * ratings[of_user].astype(np.float64)
        preference[items[of_user]] = 1
        inputs = others[:, :-1]
        left = inputs.T @ (inputs * confidence[:, None]) + 0.5 * np.eye(RANK)
        expected = np.linalg.solve(left, inputs.T @ (confidence * preference))
        np.testing.assert_allclose(found[user, :-1], expected, rtol=1e-8, atol=1e-10)


def test_held_out_ratings_of_a_matrix_of_low_rank_are_predicted() -> None:
    users, items, ratings = make_ratings(5)
    trained = np.arange(len(users)) < 0.9 * len(users)
    found = factorize(
        users[trained], items[trained], ratings[trained], None, (USERS, ITEMS), FactorSettings(RANK, 0.01, 30)
    )
    errors = predict(found, users, items) - ratings
    assert np.sqrt(np.mean(errors[~trained] ** 2)) < 0.25 * ratings[~trained].std()
    assert found.loss == pytest.approx(np.mean(errors[trained] ** 2), rel=1e-6)


def test_the_same_ratings_have_the_same_factors_and_rows_without_ratings_have_none() -> None:
    users, items, ratings = make_ratings(6)
    shape = (USERS + 2, ITEMS + 1)
    one, other = (
        factorize(users, items, ratings, None, shape, FactorSettings(RANK, 0.1, 5)) for _ in range(2)
    )
    np.testing.assert_array_equal(one.users, other.users)
    assert (one.users[USERS:] == 0).all()
    assert (one.items[ITEMS:] == 0).all()


def test_one_rating_and_no_penalty_have_finite_factors() -> None:
    ids = np.zeros(1, np.int32)
    found = factorize(ids, ids, np.ones(1, np.float32), None, (2, 2), FactorSettings(8, 0.0, 3))
    assert np.isfinite(found.users).all()
    assert predict(found, ids, ids)[0] == pytest.approx(1.0, abs=1e-3)
