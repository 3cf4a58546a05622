"""Refits: trainings of the chosen models on all rows, for as many epochs as validation rows found best.

They come last in a search, and its time may be too short for all of them; the others stay as their trials made them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from edl.jobs.trials import Trial
from edl.run.search.judge import Judge
from edl.spec import TREES, Rows

MOST = 0.4  # share of the search's time that is kept for refits
USUAL = 0.25  # the same, before enough trials have ended


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


def estimate_refit_time(judge: Judge, slots: int, seconds: float) -> float:
    """Return the seconds that refits will probably take, `slots` at once. seconds: of the search when it began."""
    search = judge.search
    if not (search.refit and search.time_limit):
        return 0.0
    ended = {number: trial for number, trial in judge.trials().items() if trial.value is not None}
    if len(ended) < search.max_members:
        return USUAL * seconds
    best = sorted(ended, key=lambda number: judge.measure.error(ended[number].value or 0.0))
    needed = sum(_refit(judge, number, ended[number]).seconds for number in best[: search.max_members])
    return min(needed / slots, MOST * seconds)


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
