"""Area under the ROC curve: how likely a row of the class scores higher than one that is not, ties counting half.

The state lists distinct scores in ascending order, with the weight of rows of the class and of others at each; two
lists merge by sorting. In training the scores are first rounded to the 16 bits of a half-precision log-odds, so that
a state has at most 65,536 entries however many rows it saw; exact, it keeps every distinct score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edl.metrics.base import Array, Metric, class_rows
from edl.metrics.states import Floats, State

_LARGEST_ODDS = 1000.0  # beyond every finite log-odds of a float64, in place of an infinity


@dataclass(frozen=True)
class AUC(Metric):
    """Area under the ROC curve; of more than two classes, the mean over each class against the rest.

    A class of which there are no rows, or nothing else, has no curve and is left out of the mean; NaN when none has.
    exact: equal to scikit-learn's; otherwise off by some 1e-6.
    State, per curve, of shape (3, m): keys of the scores, weights of the class's rows, weights of the others.
    """

    exact: bool = False
    name: ClassVar[str] = "auc"
    higher_is_better: ClassVar[bool] = True

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        classes = range(probabilities.shape[1]) if probabilities.shape[1] > 2 else (1,)
        return tuple(
            _group(self._keys(probabilities, c), weight * (truth == c), weight * (truth != c))
            for c in classes
        )

    def _merge(self, a: State, b: State) -> State:
        return tuple(_group(*np.concatenate([left, right], axis=1)) for left, right in zip(a, b, strict=True))

    def _result(self, state: State) -> float:
        areas = [area for area in map(_area, state) if not math.isnan(area)]
        return sum(areas) / len(areas) if areas else math.nan

    def _keys(self, probabilities: Floats, position: int) -> Floats:
        of_class: Floats = probabilities[:, position]
        if self.exact:
            return of_class
        others = probabilities[:, 0] if probabilities.shape[1] == 2 else 1 - of_class
        with np.errstate(divide="ignore"):
            odds = np.log(of_class) - np.log(others)
        rounded: Floats = np.clip(odds, -_LARGEST_ODDS, _LARGEST_ODDS).astype(np.float16).astype(np.float64)
        return rounded


def _group(keys: Floats, inside: Floats, outside: Floats) -> Floats:
    """Equal keys become one, ascending; shape (3, number of distinct keys)."""
    order = np.argsort(keys, kind="stable")  # merging two sorted lists is then linear
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
    return float(np.dot(inside, below + outside / 2) / pairs)
