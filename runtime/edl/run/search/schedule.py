"""Order in which a search tries its candidates: as listed, or by what ended trials show of a search space.

A search may try its first candidates in their order. Each later one is chosen by a tree-structured Parzen estimator
(Bergstra et al., 2011; multivariate as in BOHB, Falkner et al., 2018) among the compiled candidates: its neighbours are
most likely among the good trials in comparison with the others.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from edl.arrays import Array
from edl.spec import REDUCTION, Candidate, Search

LEAST_KNOWN = 4  # trials that have ended before one is chosen by them
LAG = 2  # trials for each slot or worker that may be under way when another is chosen by those before them
GOOD = 0.15  # share of the ended trials that count as good
OTHER_NAME = 0.2  # kernel of two points that differ in a name


class Schedule:
    """Order of the trials of a search, by the numbers of its candidates.

    lag: number of the trials begun last. Their results do not matter to a choice, because they may not have ended. A
    choice then depends on the trials before them alone, so the same search makes the same choices however long its
    trials take.
    """

    def __init__(self, search: Search, *, lag: int, numbers: Sequence[int] | None = None) -> None:
        """Numbers: candidates to try in this order, instead of all."""
        self._waiting = list(range(len(search.candidates)) if numbers is None else numbers)
        self._count = search.count if numbers is None else len(numbers)
        self._lag = lag
        self._begun: list[int] = []
        self._ordered = search.ordered if search.ordered and numbers is None else self._count
        chooses = self._ordered < self._count
        self._kernel = kernel(search.candidates) if chooses else np.empty((0, 0))

    @property
    def waiting(self) -> int:
        """Number of trials that have not begun."""
        return self._count - len(self._begun)

    def is_ready(self, ended: Collection[int]) -> bool:
        """Return True if the next choice does not depend on trials that have not ended. ended: their numbers."""
        return not self._is_choice or set(self._known_trials) <= set(ended)

    def take(self, errors: Mapping[int, float]) -> int | None:
        """Return the next candidate, or None after the last one.

        errors: of the trials that ended with a model, by number.
        """
        if not self.waiting:
            return None
        place = 0
        if self._is_choice:
            observed = {number: errors.get(number, math.inf) for number in self._known_trials}
            place = best(self._kernel, observed, self._waiting)
        number = self._waiting.pop(place)
        self._begun.append(number)
        return number

    @property
    def _is_choice(self) -> bool:
        return len(self._begun) >= self._ordered and len(self._known_trials) >= LEAST_KNOWN

    @property
    def _known_trials(self) -> list[int]:
        """Trials for the choice of the next one."""
        return self._begun[: max(0, len(self._begun) - self._lag)]


def choose_candidate(search: Search, turn: int, errors: Mapping[int, float], *, lag: int) -> int:
    """Return the candidate of a turn from 0. It needs the results of the turns more than `lag` before it.

    errors: of the trials that ended with a model, by number.
    """
    schedule = Schedule(search, lag=lag)
    numbers = [schedule.take(errors) for _ in range(turn + 1)]
    if (number := numbers[-1]) is None:
        raise ValueError(f"the search has no turn {turn}")
    return number


def choose_promoted(errors: Mapping[int, float]) -> list[int]:
    """Return the best third of the candidates of a screening by their errors, the best one first."""
    best = sorted(errors, key=lambda number: (errors[number], number))
    return best[: math.ceil(len(best) / REDUCTION)]


def kernel(candidates: Sequence[Candidate]) -> Array:
    """Return how near the points of candidates are, from 0 to 1: float64 (candidates, candidates)."""
    points = [candidate.point for candidate in candidates]
    matrix = np.ones((len(points), len(points)))
    for values in zip(*points, strict=True):
        if any(isinstance(value, str) for value in values):
            names = np.array([str(value) for value in values])
            matrix *= np.where(names[:, None] == names, 1.0, OTHER_NAME)
        else:
            numbers = np.array(values, np.float64)
            matrix *= np.exp(
                -np.square((numbers[:, None] - numbers) / _bandwidth(len(values), len(points[0]))) / 2
            )
    return matrix


def _bandwidth(points: int, dimensions: int) -> float:
    """Return the deviation of the kernel by Scott's rule, for numbers spread evenly from 0 to 1."""
    return math.sqrt(1 / 12) * float(points ** (-1 / (dimensions + 4)))


def best(near: Array, errors: Mapping[int, float], waiting: Sequence[int]) -> int:
    """Return the place in `waiting` of the candidate that is most likely good by the errors of others.

    near: see `kernel`.
    """
    ranked = sorted(errors, key=lambda number: (errors[number], number))
    good = math.ceil(GOOD * len(ranked))
    shares = near / near.mean(axis=0)  # a density over all candidates for each of them
    likely, other = (1 + shares[np.ix_(waiting, part)].sum(axis=1) for part in (ranked[:good], ranked[good:]))
    ratios = (likely / (1 + good)) / (other / (1 + len(ranked) - good))
    return int(np.argmax(ratios))
