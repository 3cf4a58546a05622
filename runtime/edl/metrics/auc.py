"""Area under the ROC curve: probability that a row of the class scores higher than another one, ties counting half.

A *curve* lists distinct keys of scores in ascending order, with the weight of rows of the class and of the others at
each: shape (3, m). Two curves merge by sorting. Two modes bound their size:

* in training the key is the float32 log-odds, and as soon as there are more than 16,384 keys, the lowest bits of all
  are dropped until they fit. The figure does not depend on the order of merging; its error is below 1e-6.
* exact, the key is the probability itself and every distinct one is kept. Blocks of a stream are merged only with
  curves of about their own size (as a log-structured merge tree does), or a stream would cost quadratic time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edl.metrics.base import Array, Metric, class_rows
from edl.metrics.states import Floats, State

_MOST_KEYS = 16_384
_LARGEST_ODDS = 1000.0  # beyond the log-odds of every float64, instead of infinity

_Run = Sequence[Floats]  # a curve per class


@dataclass(frozen=True)
class AUC(Metric):
    """Area under the ROC curve; for more than two classes, the mean over each class against the rest.

    A class without rows, or without rows of other classes, has no curve and is excluded from the mean, which is NaN
    if no class has one. `exact` equals scikit-learn's figure with a state that grows with the distinct scores;
    otherwise the figure is approximate. The state is (bits dropped, number of curves), then the curves, one or
    several runs of them.
    """

    exact: bool = False
    name = "auc"
    higher_is_better = True

    def curve(self, state: State) -> Floats:
        """Return the curve of the second of two classes, from a state that is not empty: (3, m), see above."""
        return _merge_runs(_runs(state))[0]

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        classes = range(probabilities.shape[1]) if probabilities.shape[1] > 2 else (1,)
        run = []
        for position in classes:
            inside = truth == position
            keys = probabilities[:, position] if self.exact else _log_odds(probabilities, position)
            run.append(_group(keys, weight * inside, weight * ~inside))
        return _state(0, [run]) if self.exact else _bound_state(0, run)

    def _merge(self, a: State, b: State) -> State:
        if a[0][1] != b[0][1]:
            raise self._other_classes()
        runs = sorted([*_runs(a), *_runs(b)], key=_size, reverse=True)
        if not self.exact:
            return _bound_state(int(max(a[0][0], b[0][0])), _merge_runs(runs))
        while len(runs) > 1 and _size(runs[-2]) < 2 * _size(runs[-1]):
            runs[-2:] = [_merge_runs(runs[-2:])]
        return _state(0, runs)

    def _result(self, state: State) -> float:
        areas = [area for area in map(_area, _merge_runs(_runs(state))) if not math.isnan(area)]
        return sum(areas) / len(areas) if areas else math.nan


class AveragePrecision(AUC):
    """Mean precision over the thresholds, each weighted by its gain in recall; of several classes, the mean of all.

    A class without rows has none. State and `exact` as of AUC.
    """

    name = "average_precision"

    def _result(self, state: State) -> float:
        areas = [area for area in map(_average_precision, _merge_runs(_runs(state))) if not math.isnan(area)]
        return sum(areas) / len(areas) if areas else math.nan


# States ----------------------------------------------------------------------------------------------------


def _state(dropped: int, runs: Sequence[_Run]) -> State:
    return (np.array([dropped, len(runs[0])], dtype=np.float64), *(curve for run in runs for curve in run))


def _runs(state: State) -> list[_Run]:
    curves = int(state[0][1])
    return [state[start : start + curves] for start in range(1, len(state), curves)]


def _size(run: _Run) -> int:
    return int(max(curve.shape[1] for curve in run))


def _merge_runs(runs: Sequence[_Run]) -> _Run:
    if len(runs) == 1:
        return runs[0]
    return [_group(*np.concatenate(curves, axis=1)) for curves in zip(*runs, strict=True)]


def _bound_state(dropped: int, run: _Run) -> State:
    """Return the state of one run after its keys lose their `dropped` lowest bits, or more if that leaves too many.

    Dropping is nested, and what is too much for a part is so for the whole, so any order of merging ends alike.
    """
    run = [_coarse(curve, dropped) for curve in run]
    while _size(run) > _MOST_KEYS:
        dropped += 1
        run = [_coarse(curve, dropped) for curve in run]
    return _state(dropped, [run])


# Curves ----------------------------------------------------------------------------------------------------


def _log_odds(probabilities: Floats, position: int) -> Floats:
    of_class = probabilities[:, position]
    others = probabilities[:, 0] if probabilities.shape[1] == 2 else 1 - of_class
    with np.errstate(divide="ignore"):
        odds = np.log(of_class) - np.log(others)
    rounded: Floats = np.clip(odds, -_LARGEST_ODDS, _LARGEST_ODDS).astype(np.float32).astype(np.float64)
    return rounded


def _coarse(curve: Floats, dropped: int) -> Floats:
    if not dropped:
        return curve
    bits = curve[0].astype(np.float32).view(np.uint32)
    keys = (bits >> np.uint32(dropped) << np.uint32(dropped)).view(np.float32)
    return _group(keys.astype(np.float64), curve[1], curve[2])


def _group(keys: Floats, inside: Floats, outside: Floats) -> Floats:
    """Merge equal keys, ascending. Return shape (3, number of distinct keys)."""
    order = np.argsort(keys, kind="stable")  # linear for sorted input, as merged curves mostly are
    keys = keys[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return np.stack(
        [keys[first], np.add.reduceat(inside[order], first), np.add.reduceat(outside[order], first)]
    )


def _area(curve: Floats) -> float:
    _, inside, outside = curve
    pairs = inside.sum() * outside.sum()
    if not pairs:
        return math.nan
    below = np.cumsum(outside) - outside
    return float((inside * (below + outside / 2)).sum() / pairs)


def _average_precision(curve: Floats) -> float:
    _, inside, outside = curve[:, ::-1]  # from the highest score
    total = inside.sum()
    if not total:
        return math.nan
    true_positives = np.cumsum(inside)
    precision = np.divide(
        true_positives,
        true_positives + np.cumsum(outside),
        out=np.zeros_like(true_positives),
        where=true_positives > 0,
    )
    return float((precision * inside).sum() / total)
