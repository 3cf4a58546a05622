"""Events of a running job. An undefined figure (the AUC of one class) is None."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from edl.spec.job import Kind

Phase = Literal["training", "evaluation", "prediction", "explanation", "search"]
PHASES: Mapping[Kind, Phase] = {
    "train": "training",
    "evaluate": "evaluation",
    "predict": "prediction",
    "explain": "explanation",
}
Figures = dict[str, float | None]


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Progress of a phase; at most about five a second.

    Of a search, `rows` counts ended trials. It may take `limit` seconds, of which `seconds` are over; both are 0
    without a limit.
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
    seconds: float = 0.0
    limit: float = 0.0


class EpochEnd(msgspec.Struct, frozen=True, tag="epoch"):
    """Row of the learning curve.

    `metrics` are measured on the validation rows, `loss` among them; empty without such rows. `final`: the epoch has
    ended; otherwise the row covers its rows so far.
    """

    epoch: int
    step: int
    loss: float | None  # mean over the epoch's training rows
    metrics: Figures
    seconds: float  # since training began
    final: bool = True


class TrialEnd(msgspec.Struct, frozen=True, tag="trial"):
    """End of a trial of a search: the training of one candidate.

    `number` counts the candidates from 1. `value` is `metric` of the validation rows, None after an `error`. `best`:
    no earlier trial was better. `left` is the remaining time of the search in seconds, None without a limit.
    """

    number: int
    trials: int
    name: str
    metric: str
    value: float | None
    seconds: float
    best: bool = False
    error: str = ""
    left: float | None = None


class Tally(msgspec.Struct, frozen=True, tag="tally"):
    """Counts of the tasks and instances of a distributed job; sent at changes, at most about five a second.

    `relaunches` counts restarted instances including the master, `waiting` those without room, `starting` those with
    room that do not run yet, `cut_off` those that run and do not reach the master, or each other. `scaling` is the last
    decision on an automatic number of workers, in words.
    """

    todo: int
    doing: int
    done: int
    instances: int = 0  # that run
    relaunches: int = 0
    waiting: int = 0
    starting: int = 0
    cut_off: int = 0
    scaling: str = ""

    @property
    def waits(self) -> bool:
        """True if there is room for none of the instances."""
        return self.waiting > 0 and not self.instances and not self.starting


class Output(msgspec.Struct, frozen=True, tag="output"):
    """Lines that a runnable has printed since the last event, often none; sent about five times a second."""

    lines: tuple[str, ...]


ProcessEvent = Progress | EpochEnd | TrialEnd  # of a job in one process
JobEvent = ProcessEvent | Tally
StatementEvent = JobEvent | Output


# Receivers of events. An observer is called by the training loop's own thread, so it must return quickly.
Observer = Callable[[ProcessEvent], None]
JobObserver = Callable[[JobEvent], None]


def ignore(event: JobEvent) -> None:
    """Ignore the event."""


def finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
