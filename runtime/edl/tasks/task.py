"""Tasks: ranges of pinned rows, the unit that is handed out, acknowledged and repeated.

A `TaskSource` is what a worker gets tasks from and reports to. `LocalTasks` is the one of a job in a single process;
it keeps two queues, training and evaluation, as a master does, and says when an epoch is over.
"""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Literal, Protocol

import msgspec
import numpy as np

from edl.metrics import State
from edl.spec import Training

TaskType = Literal["train", "evaluate", "predict"]

LEAST_ROWS = 8192  # of a block that `feed` is called on, where there are as many
STREAMED_ROWS = 65_536  # of a task that is streamed in blocks


class Task(msgspec.Struct, frozen=True):
    """The pinned rows [start, end). epoch: counted from 1; in evaluation the epoch that it follows."""

    id: int
    type: TaskType
    start: int
    end: int
    epoch: int = 0
    attempt: int = 0

    @property
    def rows(self) -> int:
        return self.end - self.start


class Report(msgspec.Struct, frozen=True):
    """A finished task.

    loss: the sum of its rows' weighted losses. weight: the sum of the weights, the rows where they have none. states:
    of the program's metrics, mergeable.
    """

    task: Task
    steps: int = 0
    loss: float = 0.0
    weight: float = 0.0
    states: dict[str, State] = {}


class TaskSource(Protocol):
    """Where tasks come from. `next` and `report` may be called from different threads."""

    @property
    def evaluation_pending(self) -> bool:
        """Whether evaluation tasks wait; they go first, between two training tasks."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether training is to end; training tasks that are handed out and not begun are void."""
        ...

    def next(self, kind: TaskType) -> Task | None:
        """The next task of that kind; None when there are no more."""
        ...

    def report(self, report: Report) -> None: ...


def task_rows(batch_size: int) -> int:
    """Rows of a training task: whole minibatches, at least `LEAST_ROWS`."""
    return -(-LEAST_ROWS // batch_size) * batch_size


def partition(start: int, end: int, rows: int) -> list[tuple[int, int]]:
    """[start, end) cut into ranges of `rows`; the last may be shorter."""
    return [(first, min(first + rows, end)) for first in range(start, end, rows)]


class Listener(Protocol):
    """Who is told, in the thread that reports."""

    def epoch_done(self, epoch: int, reports: list[Report]) -> None:
        """All training tasks of the epoch are reported."""
        ...

    def round_done(self, epoch: int, reports: list[Report]) -> None:
        """All evaluation tasks that were queued with this epoch are reported."""
        ...


class LocalTasks:
    """The tasks of a job in one process.

    rows: how many rows, from 0, are trained on. Each epoch takes the tasks in an order of its own, a function of
    (seed, epoch). With `max_steps` the last task ends where the last step ends. Evaluation tasks that the listener
    queues at the end of an epoch come before the next epoch's first step.
    """

    def __init__(self, rows: int, training: Training, listener: Listener | None = None) -> None:
        self._rows = rows
        self._training = training
        self._listener = listener
        self._ids = itertools.count()
        self._plan = self._all_epochs()
        self._expected: dict[tuple[str, int], int] = {}  # tasks of (type, epoch)
        self._reports: defaultdict[tuple[str, int], list[Report]] = defaultdict(list)
        self._queue: deque[Task] = deque()  # evaluation and prediction
        self._lock = threading.Lock()
        self.stopped = False

    @property
    def evaluation_pending(self) -> bool:
        return bool(self._queue)

    def next(self, kind: TaskType) -> Task | None:
        with self._lock:
            if kind != "train":
                return self._queue.popleft() if self._queue else None
            return None if self.stopped else next(self._plan, None)

    def report(self, report: Report) -> None:
        key = report.task.type, report.task.epoch
        self._reports[key].append(report)
        if len(self._reports[key]) < self._expected[key]:
            return
        reports = self._reports.pop(key)
        if self._listener is not None:
            done = self._listener.epoch_done if key[0] == "train" else self._listener.round_done
            done(report.task.epoch, reports)

    def queue(self, kind: TaskType, start: int, end: int, epoch: int = 0) -> int:
        """Queue the rows [start, end) for evaluation or prediction; the number of tasks."""
        with self._lock:
            ranges = partition(start, end, STREAMED_ROWS)
            self._expected[kind, epoch] = len(ranges)
            self._queue.extend(Task(next(self._ids), kind, first, last, epoch) for first, last in ranges)
        return len(ranges)

    def stop(self) -> None:
        """Hand out no more training tasks; those that are read ahead are void."""
        self.stopped = True

    def _all_epochs(self) -> Iterator[Task]:
        steps = self._training.max_steps or None
        for epoch in range(1, self._training.epochs + 1):
            ranges, steps = self._limited(self._ranges(epoch), steps)
            self._expected["train", epoch] = len(ranges)
            for start, end in ranges:
                yield Task(next(self._ids), "train", start, end, epoch)
            if steps == 0:
                return

    def _ranges(self, epoch: int) -> list[tuple[int, int]]:
        ranges = partition(0, self._rows, task_rows(self._training.batch_size))
        if not self._training.shuffle:
            return ranges
        order = generator(self._training.seed, epoch).permutation(len(ranges))
        return [ranges[position] for position in order]

    def _limited(
        self, ranges: list[tuple[int, int]], steps: int | None
    ) -> tuple[list[tuple[int, int]], int | None]:
        """The ranges as far as `steps` reach, and the steps that are left."""
        if steps is None:
            return ranges, None
        kept = []
        size = self._training.batch_size
        for start, end in ranges:
            if not steps:
                break
            taken = min(steps, -(-(end - start) // size))
            kept.append((start, min(end, start + taken * size)))
            steps -= taken
        return kept, steps


def generator(*seeds: int) -> np.random.Generator:
    """Random numbers that are a function of `seeds` alone, in every process."""
    return np.random.default_rng([seed % 2**64 for seed in seeds])
