"""What a job tells while it runs. A figure that does not exist (the AUC of one class) is None."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

from edl.spec.job import Kind

Phase = Literal["training", "evaluation", "prediction", "explanation"]
PHASES: Mapping[Kind, Phase] = {
    "train": "training",
    "evaluate": "evaluation",
    "predict": "prediction",
    "explain": "explanation",
}
Figures = dict[str, float | None]


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How far a phase is; at most about five a second.

    rows, total: of this phase, over all epochs. rows_per_second: of late, all time counted (`edl.tasks.rate`). epoch:
    counted from 1; 0 outside training. loss: the mean since the last event. may_end_early: early stopping may end the
    phase before its last row.
    """

    phase: Phase
    rows: int
    total: int
    rows_per_second: float
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    loss: float | None = None
    may_end_early: bool = False


class EpochEnd(msgspec.Struct, frozen=True, tag="epoch"):
    """A row of the learning curve. metrics: of the validation rows, `loss` among them; empty without such rows.

    final: the epoch has ended; else its rows so far count.
    """

    epoch: int
    step: int
    loss: float | None  # mean over the epoch's training rows
    metrics: Figures
    seconds: float  # since training began
    final: bool = True


class Tally(msgspec.Struct, frozen=True, tag="tally"):
    """Where the tasks and the instances of a distributed job stand; told at changes, at most about five a second.

    relaunches: instances that were started again, the master among them. waiting: instances that there is no room for.
    starting: those that there is room for, and that do not run yet.
    """

    todo: int
    doing: int
    done: int
    instances: int = 0  # that run
    relaunches: int = 0
    waiting: int = 0
    starting: int = 0

    @property
    def waits(self) -> bool:
        """Whether there is room for none of the instances."""
        return self.waiting > 0 and not self.instances and not self.starting


class Observer(Protocol):
    """Who is told. Called from the loop's own thread, so it must not take long."""

    def __call__(self, event: Progress | EpochEnd) -> None: ...


def finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
