"""Record of the trials of a search, stored in the archive of the model that it found."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edl.jobs.events import Figures

RECORD, SCREENING_RECORD = (
    "trial.json",
    "screening.json",
)  # files with a record, beside the folders of the folds


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Training of one candidate.

    `number` counts from 1 in the order of the search. `statement` trains the same model by itself. `value` is the
    search's metric of the validation rows and `figures` are all metrics; None and empty after an `error`. `weight` is
    the share of the model in the ensemble, 0 if it is not in it. `epochs` is the length of its training up to the
    weights that it kept, the mean of its folds; `epoch_seconds` is the duration of one. `ending` tells why the training
    ended early. `fold_values` are the metric of the search on the rows of each fold, if there are several. With `refit`
    epochs the model in the ensemble was trained once more, on all rows; 0 if the search ended before that. `screened`
    is the metric after a training on some of the rows, which chose the candidates that were trained on all.
    `rows_per_second` is the rate at which the model predicted rows that it did not learn from; 0 if that is not known.
    """

    number: int
    name: str
    statement: str
    value: float | None = None
    figures: Figures = {}
    seconds: float = 0.0
    weight: float = 0.0
    epochs: int = 0
    epoch_seconds: float = 0.0
    refit: int | None = None
    ending: str = ""
    screened: float | None = None
    error: str = ""
    rows_per_second: float = 0.0
    fold_values: tuple[float | None, ...] | msgspec.UnsetType = msgspec.UNSET


def are_refitted(trials: Iterable[Trial]) -> bool:
    """Return True if all models that a search chose were trained once more on all rows."""
    chosen = [trial for trial in trials if trial.weight]
    return bool(chosen) and all(trial.refit for trial in chosen)
