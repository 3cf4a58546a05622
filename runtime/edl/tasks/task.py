"""Tasks and reports: what is handed out, and what comes back.

A task is a range of pinned rows, or, with no rows of its own, a step that needs the user's program: `conclude` makes
figures of what the tasks of a round measured, `export` writes what the job came to.
"""

from __future__ import annotations

import contextlib
from typing import Literal, Protocol

import msgspec

from edl.metrics import State
from edl.tasks.curve import Standing
from edl.tasks.events import EpochEnd, Figures, finite
from edl.tasks.outcome import MeasuredOn, Outcome

TaskType = Literal["train", "evaluate", "predict", "conclude", "export"]
CONTROL: tuple[TaskType, ...] = ("evaluate", "conclude", "export")  # what goes between two training tasks


class Summary(msgspec.Struct):
    """What reports add up to.

    rows: each counted once per epoch. loss: the sum of the rows' weighted losses; weight: the sum of their weights, the
    rows where they have none. states: of the program's metrics; more than one where they could not be merged yet.
    """

    rows: int = 0
    steps: int = 0
    loss: float = 0.0
    weight: float = 0.0
    states: list[dict[str, State]] = []

    @property
    def mean_loss(self) -> float | None:
        """The weighted mean loss; None of nothing, and when it is no number."""
        return finite(self.loss / self.weight) if self.weight else None


class JobProgress(msgspec.Struct, frozen=True):
    """What a job came to, as far as its tasks tell. rows: each counted once per epoch. curve: thinned. epochs: that
    were concluded. standing: after the last of them.
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


class Round(msgspec.Struct, frozen=True):
    """What a `conclude` or an `export` task is about; of a training task, the last that set the rate.

    epoch: in which it falls, 0 outside training; final: it ends that epoch. step: of the optimizer. trained: the
    epoch so far. measured: of the rows that `measured_on` names. course: of the whole job, for
    the export. standing: before it, for a conclusion. curve: the same, thinned, where the program has callbacks. rate:
    of the steps from now on, for training.
    """

    number: int = 0
    epoch: int = 0
    final: bool = True
    step: int = 0
    trained: Summary = msgspec.field(default_factory=Summary)
    measured: Summary = msgspec.field(default_factory=Summary)
    measured_on: MeasuredOn = ""
    course: JobProgress | None = None
    curve: tuple[EpochEnd, ...] = ()
    rate: float | None = None
    standing: Standing = Standing()


class Task(msgspec.Struct, frozen=True):
    """The pinned rows [start, end), to be done once.

    id: the position among the tasks of its type and number. number: the epoch of a training task, counted from 1; the
    round of an evaluation. skip: so many of its rows, in the order in which training takes them, are done already.
    attempt: identifies the lease; a later lease has a greater one. settles: none of its number is left to hand out, so
    what follows may be known once it is reported.
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
        """That are to be done."""
        return self.end - self.start - self.skip


class Conclusion(msgspec.Struct, frozen=True):
    """What a program makes of a round. stop: why training is to end, empty to go on. outcome: of an export. rate: of
    the steps from now on, where a callback wants one. callbacks: the program has some, which are given each epoch.
    """

    figures: Figures = {}
    stop: str = ""
    outcome: Outcome | None = None
    rate: float | None = None
    callbacks: bool = False


class Report(msgspec.Struct, frozen=True):
    """A finished task, or the part of one that was done before it is given back.

    rows: that were done. loss, weight, states: as in `Summary`.
    """

    task: Task
    rows: int = 0
    steps: int = 0
    loss: float = 0.0
    weight: float = 0.0
    states: dict[str, State] = {}
    conclusion: Conclusion | None = None


class TaskSource(Protocol):
    """Where a worker gets tasks and reports to. Methods may be called from different threads.

    waits: whether `next` may wait for somebody else.
    """

    waits: bool

    @property
    def pending(self) -> bool:
        """Whether tasks wait that go between two training tasks."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether training is to end; training tasks that are handed out and not begun are void."""
        ...

    def next(self, *types: TaskType) -> Task | None:
        """The next task of these types, the first of them first; waits for one.

        None when there will be none, or, of training tasks, when others are pending, or when there is none now and
        the gradients of some in hands are not in the parameters yet: `over` tells which it is.
        """
        ...

    def turn(self) -> bool:
        """The loop has come to where `next` gave no training task: whether all that was trained before is to be in the
        parameters first."""
        ...

    def valid(self, task: Task) -> bool:
        """Whether a task in hands is still ours: else what is done of it counts for nothing."""
        ...

    def over(self, kind: TaskType) -> bool:
        """Whether there will be no task of that type any more."""
        ...

    def progress(self, done: Report) -> None:
        """What is done of a task since it was handed out."""
        ...

    def report(self, report: Report) -> None:
        """The task is done."""
        ...

    def failed(self, task: Task, error: Exception) -> bool:
        """Doing the task raised `error`. True: it is done again, and the worker goes on; False: nobody else can."""
        ...

    def give_back(self, part: Report) -> None:
        """The worker cannot finish the task; `part` of it is done for good."""
        ...

    def awake(self) -> contextlib.AbstractContextManager[None]:
        """While this is open, `next` waits for nothing."""
        ...
