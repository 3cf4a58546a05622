"""Factors of a sparse matrix of ratings by alternating least squares.

With the factors of the items fixed, the factors of each user are the solution of a small ridge regression of their own,
and the other way round. The normal equations of many users are made and solved together, in batches of bounded size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int32]
Ratings = npt.NDArray[np.float32]

_SEGMENT = 512  # largest number of ratings of one row that are multiplied at once
_BATCH = 1 << 21  # numbers in the arrays of a batch
_LEAST_PENALTY = 1e-8  # keeps rows with fewer ratings than factors solvable
_PROGRESS = 1e-4  # share of the loss below which an iteration is the last one


@dataclass(frozen=True)
class FactorSettings:
    """Settings of a factorization. factors: length of the vectors, without the bias.

    l2: penalty of the squared factors, for each rating of their row or column if `weighted` (Zhou et al., 2008).
    alpha: growth of the confidence with a rating, for implicit feedback (Hu, Koren and Volinsky, 2008); None for
    ratings themselves, which also have a bias for each row and column. iterations: at most.
    """

    factors: int
    l2: float
    iterations: int
    alpha: float | None = None
    seed: int = 0


class Factors(NamedTuple):
    """Factors and biases of users and items, (users, factors + 1) and (items, factors + 1), and the training loss.

    A prediction is the product of both vectors, plus both biases, which are the last numbers.
    """

    users: Doubles
    items: Doubles
    loss: float


@dataclass(frozen=True)
class RatingRows:
    """Ratings in the order of their users, or of their items. starts: (rows + 1,) places of the first ratings."""

    starts: npt.NDArray[np.int64]
    others: Ids
    ratings: Ratings
    weights: Ratings | None

    @classmethod
    def sort(
        cls, rows: Ids, others: Ids, ratings: Ratings, weights: Ratings | None, count: int
    ) -> RatingRows:
        """Return the ratings in the order of `rows`, ids below `count`."""
        order = np.argsort(rows, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
        return cls(starts, others[order], ratings[order], None if weights is None else weights[order])


def factorize(
    users: Ids,
    items: Ids,
    ratings: Ratings,
    weights: Ratings | None,
    shape: tuple[int, int],
    settings: FactorSettings,
) -> Factors:
    """Return the factors of ratings that are already less their mean, or of implicit ones as they are."""
    by_user = RatingRows.sort(users, items, ratings, weights, shape[0])
    by_item = RatingRows.sort(items, users, ratings, weights, shape[1])
    random = np.random.default_rng(settings.seed)
    width = settings.factors + 1
    of_users = np.zeros((shape[0], width))
    of_items = np.zeros((shape[1], width))
    start = random.standard_normal((shape[1], settings.factors)) / np.sqrt(settings.factors)
    has_ratings = np.diff(by_item.starts) > 0  # other items have no influence on the users
    of_items[:, :-1] = np.where(has_ratings[:, None], start if settings.alpha is None else np.abs(start), 0.0)
    loss = np.inf
    for _ in range(settings.iterations):
        _solve_rows(by_user, of_items, of_users, settings)
        after = _solve_rows(by_item, of_users, of_items, settings)
        if after > loss * (1 - _PROGRESS):
            loss = min(after, loss)
            break
        loss = after
    return Factors(of_users, of_items, loss)


def _solve_rows(rows: RatingRows, others: Doubles, result: Doubles, settings: FactorSettings) -> float:
    """Write the factors of each row, with the others fixed, to `result`; return the mean loss of the ratings."""
    is_implicit = settings.alpha is not None
    width = settings.factors if is_implicit else settings.factors + 1
    inputs = others[:, :width].copy()
    if not is_implicit:
        inputs[:, -1] = 1.0  # of the bias of the row
    everything = inputs.T @ inputs if is_implicit else np.zeros((width, width))
    loss = 0.0
    for first, last in _chunks(rows.starts, width):
        products = np.broadcast_to(everything, (last - first, width, width)).copy()
        targets = np.zeros((last - first, width))
        squares = np.zeros(last - first)
        for owners, places, is_used in _segments(rows.starts, first, last, width):
            block = inputs[rows.others[places]]
            ratings = np.where(is_used, rows.ratings[places], 0.0).astype(np.float64)
            weights = is_used * (1.0 if rows.weights is None else rows.weights[places].astype(np.float64))
            if settings.alpha is not None:
                extra, is_liked = weights * settings.alpha * np.maximum(ratings, 0), ratings > 0
                values = (weights + extra) * is_liked
                squares_of_block = values
            else:
                wanted_values = ratings - others[rows.others[places], -1]
                extra, values = weights, weights * wanted_values
                squares_of_block = values * wanted_values
            np.add.at(products, owners, np.swapaxes(block * extra[:, :, None], 1, 2) @ block)
            np.add.at(targets, owners, np.einsum("sm,smk->sk", values, block))
            np.add.at(squares, owners, squares_of_block.sum(axis=1))
        solved = _solve(products, targets, np.diff(rows.starts[first : last + 1]), settings)
        errors = squares - 2 * np.einsum("rk,rk->r", solved, targets)
        loss += float((errors + np.einsum("rk,rkl,rl->r", solved, products, solved)).sum())
        result[first:last, :width] = solved
    return max(loss, 0.0) / max(1, len(rows.ratings))


def _solve(
    products: Doubles, targets: Doubles, counts: npt.NDArray[np.int64], settings: FactorSettings
) -> Doubles:
    """Return the solutions of the normal equations with the penalty, zeros of rows without ratings."""
    scale = np.maximum(counts, 1) if settings.alpha is None else np.ones(len(counts))
    penalties = np.maximum(settings.l2 * scale, _LEAST_PENALTY)[:, None, None]
    solved = np.linalg.solve(products + penalties * np.eye(targets.shape[1]), targets[:, :, None])[:, :, 0]
    return np.where((counts > 0)[:, None], solved, 0.0)


def _chunks(starts: npt.NDArray[np.int64], width: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that have normal equations of bounded size together."""
    step = max(1, _BATCH // width**2)
    for first in range(0, len(starts) - 1, step):
        yield first, min(first + step, len(starts) - 1)


def _segments(
    starts: npt.NDArray[np.int64], first: int, last: int, width: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """Yield batches of segments of the rows: the row of each, less `first`, and the places of their ratings.

    The places are (segments, longest segment); the flags are False behind the end of a shorter one.
    """
    counts = np.diff(starts[first : last + 1])
    pieces = -(-counts // _SEGMENT)
    owners = np.repeat(np.arange(last - first), pieces)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = starts[first:last][owners] + number * _SEGMENT
    lengths = np.minimum(counts[owners] - number * _SEGMENT, _SEGMENT)
    order = np.argsort(lengths, kind="stable")
    at = 0
    while at < len(order):
        # As the lengths rise, the first segment that no longer fits is found by halving.
        room = _BATCH // width
        numbers = lengths[order[at:]] * np.arange(1, len(order) - at + 1)
        end = at + max(1, int(np.searchsorted(numbers, room, side="right")))
        some = order[at:end]
        steps = np.arange(lengths[some[-1]])
        is_used = steps < lengths[some][:, None]
        places = np.where(is_used, begins[some][:, None] + steps, begins[some][:, None])
        yield owners[some], places, is_used
        at = end
