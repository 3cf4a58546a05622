"""When the worker loop reports what it trained: a strategy says when gradients are in the parameters for good."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.evaluation.scoring import Scorer
from edl.input.blocks import Blocks
from edl.jobs.events import EpochEnd
from edl.spec import Rows
from edl.tasks.local import LocalTasks
from edl.tasks.task import CONTROL, Conclusion, Report, Round, Task, TaskType
from edl.worker.loop import DivergedError, Worker
from edl.worker.strategies.base import VoidError
from edl.worker.trainer import plan
from tests.edl.programs import loaded, rows_of, simple
from tests.edl.worker.test_trainer import table

ROWS, SIZE = 400, 50  # with a minibatch a task


class Slow:
    """A strategy that has gradients in the parameters when they are flushed, or when the next task was trained."""

    group = 1
    measures_between_steps = False

    def __init__(self) -> None:
        self.step = self.flushed = 0
        self.trained: list[Task] = []
        self.void: set[int] = set()

    def train(self, rows: Any, done: Report, rates: Any) -> np.ndarray:
        if done.task.id in self.void:
            raise VoidError
        self.trained.append(done.task)
        self.step += rows.steps
        return np.ones(rows.steps, np.float32)

    def weight_of(self, own: float) -> float:
        return own

    def mark(self) -> int:
        return self.step

    def is_durable(self, mark: int) -> bool:
        return mark < self.step or mark <= self.flushed

    def flush(self) -> None:
        self.flushed = self.step

    def remember(self, epoch: int) -> None:
        pass

    def scoring(self, round_: Any = None) -> Any:
        return contextlib.nullcontext()


class Source(LocalTasks):
    """Writes down what is told, and when: behind how many tasks that were trained."""

    def __init__(self, plan: Any, strategy: Slow) -> None:
        super().__init__(plan)
        self._strategy = strategy
        self.told: list[tuple[str, int, int]] = []
        self.revoked: set[int] = set()

    def holds_lease(self, task: Task) -> bool:
        return task.id not in self.revoked

    def report(self, report: Report) -> None:
        if report.task.type == "train":
            self.told.append(("done", report.task.id, len(self._strategy.trained)))
        super().report(report)

    def give_back(self, part: Report) -> None:
        """Somebody else does it."""
        self.told.append(("given back", part.task.id, len(self._strategy.trained)))


class Ends:
    def conclude(self, round_: Round) -> Conclusion:
        return Conclusion()

    def export(self, round_: Round) -> Conclusion:
        return Conclusion()


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Worker, Slow, Source, Any]:
    program = loaded(
        simple(tmp_path / "p", rows=Rows(True, ROWS, ROWS), batch_size=SIZE, minibatches_per_task=1)
    )
    strategy = Slow()
    tasks = Source(plan(program.spec, program.spec.rows), strategy)
    blocks = Blocks(program, rows_of(tmp_path / "r", table(ROWS)))
    scorer: Any = Scorer(program, None, 100)  # type: ignore[arg-type]  # no figures are wanted here
    worker = Worker(blocks, scorer, strategy, tasks, _silent, {}, threading.Event())  # type: ignore[arg-type]
    return worker, strategy, tasks, program.spec.training


def _silent(event: Any) -> None:
    assert not isinstance(event, EpochEnd)


def leave_after(worker: Worker, task: int) -> None:
    def look(done: Report) -> None:
        if done.task.id == task:
            worker.draining.set()

    worker.after_steps = look


def test_a_task_is_reported_when_its_gradients_are_in_the_parameters(
    parts: tuple[Worker, Slow, Source, Any],
) -> None:
    worker, _, tasks, training = parts
    leave_after(worker, 7)
    worker.train(training, Ends(), ROWS)
    told = [(number, behind) for kind, number, behind in tasks.told if kind == "done"]
    assert told == [*((number, number + 2) for number in range(7)), (7, 8)]


@pytest.mark.parametrize("between_steps", [True, False])
def test_control_tasks_come_before_the_next_call_of_the_model_where_the_strategy_can(
    parts: tuple[Worker, Slow, Source, Any], monkeypatch: pytest.MonkeyPatch, between_steps: bool
) -> None:
    worker, strategy, tasks, training = parts
    strategy.measures_between_steps = between_steps
    seen: list[int] = []  # trained pieces when the control task was done
    waiting = [Task(0, "conclude")]

    def take(*types: TaskType) -> Task | None:
        return waiting.pop() if types == CONTROL and waiting else LocalTasks.next(tasks, *types)

    monkeypatch.setattr(type(tasks), "is_pending", property(lambda self: bool(waiting)))
    monkeypatch.setattr(tasks, "next", take)
    monkeypatch.setattr(worker, "_do_control_task", lambda *of: seen.append(len(strategy.trained)))
    leave_after(worker, 3)
    worker.train(training, Ends(), ROWS)
    assert seen == [0 if between_steps else 1]


def test_a_task_that_is_void_is_dropped_and_not_reported(
    parts: tuple[Worker, Slow, Source, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its first step, in its middle, and after its last."""
    worker, strategy, tasks, training = parts
    leave_after(worker, 7)
    tasks.revoked = {2}
    strategy.void = {4}
    real = strategy.train

    def train(rows: Any, done: Report, rates: Any) -> np.ndarray:
        losses = real(rows, done, rates)
        if done.task.id == 6:
            tasks.revoked.add(6)
        return losses

    monkeypatch.setattr(strategy, "train", train)
    worker.train(training, Ends(), ROWS)
    assert [number for kind, number, _ in tasks.told if kind == "done"] == [0, 1, 3, 5, 7]
    assert [number for kind, number, _ in tasks.told if kind == "given back"] == [2, 4]
    assert [task.id for task in strategy.trained] == [0, 1, 3, 5, 6, 7]


def test_a_worker_that_has_to_go_reports_what_is_in_first(parts: tuple[Worker, Slow, Source, Any]) -> None:
    worker, _, tasks, training = parts
    leave_after(worker, 3)
    worker.train(training, Ends(), ROWS)
    assert [(kind, number) for kind, number, _ in tasks.told] == [("done", number) for number in range(4)]


def test_what_cannot_be_in_any_more_is_not_given_back(
    parts: tuple[Worker, Slow, Source, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, strategy, tasks, training = parts

    def lost() -> None:
        raise VoidError

    monkeypatch.setattr(strategy, "flush", lost)
    leave_after(worker, 3)
    worker.train(training, Ends(), ROWS)
    assert [(kind, number) for kind, number, _ in tasks.told] == [("done", number) for number in range(3)]


def test_a_loss_that_is_no_number_is_named_by_the_step_that_followed_what_was_known(
    parts: tuple[Worker, Slow, Source, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parameters on servers may have taken one step for several minibatches."""
    worker, strategy, _, training = parts
    monkeypatch.setattr(strategy, "train", lambda rows, done, rates: np.array([np.nan], np.float32))
    with pytest.raises(DivergedError, match="the loss became nan at step 1, in epoch 1"):
        worker.train(training, Ends(), ROWS)
