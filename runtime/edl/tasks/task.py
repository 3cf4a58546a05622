"""Tasks and reports: the units of work, and their results.

A task is a range of pinned rows, or, without rows, a step that needs the user's program: `conclude` computes metrics
from the measurements of a round, `export` writes the result of the job.
"""

from __future__ import annotations

import contextlib
from typing import Literal, Protocol

import msgspec

from edl.jobs.events import EpochEnd, Figures, TrialEnd, finite
from edl.jobs.outcome import MeasuredOn, Outcome
from edl.metrics import State
from edl.spec import Uncertainty
from edl.tasks.curve import Standing

TaskType = Literal["train", "evaluate", "predict", "conclude", "export"]
CONTROL: tuple[TaskType, ...] = ("evaluate", "conclude", "export")  # what goes between two training tasks


class Summary(msgspec.Struct):
    """Sum of reports.

    `rows` are counted once per epoch. `loss` is the sum of the rows' weighted losses, `weight` the sum of their
    weights, or the number of rows without weights. `states` are the states of the program's metrics; several if they
    could not be merged yet.
    """

    rows: int = 0
    steps: int = 0
    loss: float = 0.0
    weight: float = 0.0
    states: list[dict[str, State]] = []

    @property
    def mean_loss(self) -> float | None:
        """Weighted mean loss, or None if there are no rows or it is not finite."""
        return finite(self.loss / self.weight) if self.weight else None


class JobProgress(msgspec.Struct, frozen=True):
    """Results of a job according to its tasks. `rows` are counted once per epoch, `epochs` are concluded. `curve` is
    thinned. `standing` is the standing after the last epoch. `figures` and `uncertainty` come from the last round.
    """

    rows: int = 0
    steps: int = 0
    seconds: float = 0.0
    curve: tuple[EpochEnd, ...] = ()
    figures: Figures = {}
    measured_on: MeasuredOn = ""
    stopped: str = ""
    epochs: int = 0
    standing: Standing = Standing()
    uncertainty: Uncertainty | None = None


class Round(msgspec.Struct, frozen=True):
    """Subject of a `conclude` or `export` task; for a training task, the last round that set the learning rate.

    `epoch` is the epoch it falls in, 0 outside training; `final`: it ends that epoch. `step` is the optimizer step.
    `trained` covers the epoch so far, `measured` the rows that `measured_on` names. `progress` covers the whole job,
    for the export. `standing` is that before a conclusion. `curve` is the learning curve so far, thinned, if the
    program has callbacks. `rate` is the learning rate from now on.
    """

    number: int = 0
    epoch: int = 0
    final: bool = True
    step: int = 0
    trained: Summary = msgspec.field(default_factory=Summary)
    measured: Summary = msgspec.field(default_factory=Summary)
    measured_on: MeasuredOn = ""
    progress: JobProgress | None = None
    curve: tuple[EpochEnd, ...] = ()
    rate: float | None = None
    standing: Standing = Standing()


class Task(msgspec.Struct, frozen=True):
    """Pinned rows [start, end), to be done once.

    `id` is the position among the tasks of its type and number. `number` is the epoch of a training task, counted from
    1, or the round of an evaluation. `skip` rows, in the order of training, are done already. `attempt` identifies the
    lease; a later lease has a greater one. `settles`: it is the last available task of its number, so its report may
    complete that.
    """

    id: int
    type: TaskType
    start: int = 0
    end: int = 0
    number: int = 0
    skip: int = 0
    attempt: int = 0
    settles: bool = False
    round: Round | None = None

    @property
    def rows(self) -> int:
        """Number of rows to do."""
        return self.end - self.start - self.skip


class Conclusion(msgspec.Struct, frozen=True):
    """Result of a round, or of a trial.

    `stop` is the reason to end training, or empty. `outcome` is the outcome of an export. `rate` is the learning rate
    from now on if a callback sets one. `callbacks`: the program has callbacks, which receive each epoch. `trial` is the
    end of a trial of a search. `uncertainty` describes the validation rows.
    """

    figures: Figures = {}
    stop: str = ""
    outcome: Outcome | None = None
    rate: float | None = None
    callbacks: bool = False
    trial: TrialEnd | None = None
    uncertainty: Uncertainty | None = None


class Report(msgspec.Struct, frozen=True):
    """Finished task, or the part of one that is done: while it is worked on, or before it is given back.

    `rows` were done; `loss`, `weight` and `states` are as in `Summary`.
    """

    task: Task
    rows: int = 0
    steps: int = 0
    loss: float = 0.0
    weight: float = 0.0
    states: dict[str, State] = {}
    conclusion: Conclusion | None = None

    def plus(self, rows: int, steps: int, loss: float, weight: float) -> Report:
        """Return the report with another part of the task done."""
        return Report(
            self.task,
            self.rows + rows,
            self.steps + steps,
            self.loss + loss,
            self.weight + weight,
            self.states,
            self.conclusion,
        )


class TaskSource(Protocol):
    """Source of a worker's tasks and receiver of its reports. Methods may be called from different threads.

    `waits`: `next` may wait for other workers.
    """

    waits: bool

    @property
    def is_pending(self) -> bool:
        """True if control tasks are available, which run between two training tasks."""
        ...

    @property
    def is_stopped(self) -> bool:
        """True if training is to end; training tasks that are assigned and not begun are void."""
        ...

    def next(self, *types: TaskType) -> Task | None:
        """Wait for the next task of these types, preferring the first type, and return it.

        Return None if there will be none. For training tasks also return None if control tasks are available, or if
        none is available now and the gradients of assigned ones are not in the parameters yet; `over` distinguishes
        these.
        """
        ...

    def turn(self) -> bool:
        """Return True if earlier gradients must be applied first; called when `next` has returned no training task."""
        ...

    def holds_lease(self, task: Task) -> bool:
        """Return True if the lease of the task is still valid; otherwise its result does not count."""
        ...

    def is_over(self, kind: TaskType) -> bool:
        """Return True if there will be no more tasks of that type."""
        ...

    def progress(self, done: Report) -> None:
        """Record the progress of a task since it was assigned."""
        ...

    def report(self, report: Report) -> None:
        """Report the task as done."""
        ...

    def take_postponed(self) -> int:
        """Return once the epoch that has ended and is measured later, because no master answers; 0: none."""
        ...

    def report_failure(self, task: Task, error: Exception) -> bool:
        """Report that the task raised `error`. Return True if it is repeated and this worker continues."""
        ...

    def give_back(self, part: Report) -> None:
        """Return the task; `part` of it is durable."""
        ...

    def awake(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which `next` does not wait."""
        ...
