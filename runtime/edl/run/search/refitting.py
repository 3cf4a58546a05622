"""Refits: trainings of the chosen models on all rows, for as many epochs as validation rows found best.

They come last in a search, and its time may be too short for all of them; the others stay as their trials made them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from edl.arrays import Array
from edl.jobs.trials import Trial
from edl.run.search.judge import Judge
from edl.run.search.selection import select
from edl.spec import TREES, Rows

MOST = 0.4  # share of the search's time that is kept for refits
USUAL = 0.25  # the same, before a trial has ended
SAMPLE, ADDITIONS = 2_000, 12  # validation rows and additions of the ensemble that refits are estimated by


@dataclass(frozen=True, slots=True)
class Refit:
    """Training of the model of a trial, `number` from 0, on all rows. seconds: that it probably takes."""

    number: int
    epochs: int
    seconds: float


def refits(judge: Judge, weights: Mapping[int, float]) -> list[Refit]:
    """Return the refits of the models in an ensemble; the first ones weigh most for their time."""
    if not judge.search.refit:
        return []
    trials = judge.trials()
    all_refits = [_refit(judge, number, trials[number]) for number in weights]
    return sorted(
        all_refits, key=lambda refit: (-weights[refit.number] / max(refit.seconds, 1e-3), refit.number)
    )


class RefitReserve:
    """Estimate of the seconds that refits will take, `slots` at once: of the models in an ensemble of the ended trials.

    seconds: of the search when it began.
    """

    def __init__(self, judge: Judge, slots: int, seconds: float) -> None:
        self._judge, self._slots, self._seconds = judge, slots, seconds
        self._scores: dict[int, Array] = {}  # of some of the rows, by trial
        self._members: tuple[int, list[int]] = (0, [])  # of the ensemble, of so many trials
        self._lock = threading.Lock()

    def estimate(self) -> float:
        """Return the seconds; 0 if there are no refits, or no limit."""
        search = self._judge.search
        if not (search.refit and search.time_limit):
            return 0.0
        ended = {number: trial for number, trial in self._judge.trials().items() if trial.value is not None}
        if not ended:
            return USUAL * self._seconds
        with self._lock:
            if self._members[0] != len(ended):
                self._members = len(ended), self._choose(ended)
        needed = sum(_refit(self._judge, number, ended[number]).seconds for number in self._members[1])
        return min(needed / self._slots, MOST * self._seconds)

    def _choose(self, numbers: Iterable[int]) -> list[int]:
        """Return the members of the best ensemble on some of the validation rows."""
        rows = self._judge.validation.stop
        part = np.unique(np.linspace(0, rows - 1, min(rows, SAMPLE)).astype(np.int64))
        for number in numbers:
            if number not in self._scores:
                self._scores[number] = self._judge.scores(number)[part]
        measure = self._judge.measure.choose_rows(part)
        return list(select(self._scores, measure, self._judge.search.max_members, rounds=ADDITIONS))


def _refit(judge: Judge, number: int, trial: Trial) -> Refit:
    spec = judge.search.candidates[number].spec
    more = _growth(spec.rows)
    # Each round of boosting learns less from more rows; an epoch of a network has more steps by itself.
    grows = spec.framework in TREES and spec.training.early_stopping  # else the statement gives the rounds
    epochs = max(1, round(trial.epochs * math.sqrt(more)) if grows else trial.epochs)
    return Refit(number, epochs, epochs * trial.epoch_seconds * more)


def _growth(rows: Rows) -> float:
    """Return the ratio of all rows to the training rows of a trial."""
    return rows.total / rows.training
