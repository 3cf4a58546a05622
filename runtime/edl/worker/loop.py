"""Worker loop: take a task, do it, report it.

There is one loop for every kind of job, strategy and framework. The parts that differ are composed into it: the task
source (in process, or a master), the adapter (Keras, PyTorch) and the strategy (local, parameter servers, all-reduce).
A thread reads and converts rows ahead of the steps while there is something to read. Control tasks (evaluations and
what follows from them) run between two training tasks, with asynchronous servers also between two calls of the model.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from edl.data.results import ResultSink
from edl.errors import JobError
from edl.evaluation.measuring import measure
from edl.evaluation.prediction import Results
from edl.evaluation.scoring import Scorer
from edl.frameworks import Minibatches
from edl.frameworks.adapter import Floats
from edl.input.blocks import Block, Blocks
from edl.input.prefetch import Prefetch
from edl.jobs.events import Observer
from edl.jobs.outcome import JobCancelledError
from edl.metrics import Metric
from edl.program import Mode
from edl.spec import Training
from edl.tasks.task import CONTROL, Conclusion, Report, Round, Task, TaskSource
from edl.worker.learning_rate import Rates
from edl.worker.progress import Meter
from edl.worker.strategies.base import Strategy, VoidError

AHEAD = 2  # blocks to read ahead

_ReadAhead = (
    tuple[Task, Block | Exception] | None
)  # task with its rows, or why they are not read; None: control tasks


class DivergedError(JobError):
    """Error of a loss that is NaN or infinite; a retry gives the same."""


class _DrainedError(Exception):
    """Signal that the worker has to leave in the middle of a task."""

    def __init__(self, part: Report) -> None:
        super().__init__("drained")
        self.part = part


class ControlTaskHandler(Protocol):
    """Handler of the control tasks that need the program and no rows."""

    def conclude(self, round_: Round) -> Conclusion: ...

    def export(self, round_: Round) -> Conclusion: ...


@dataclass
class Worker:
    """Loop over the tasks of `source`.

    `cancelled`, set from any thread, stops the loop between two calls of the model. `draining`, set from any thread,
    makes the worker leave: it returns the task it has begun, and no work is lost. `after_steps` is called between two
    calls of the model with the progress of the current task. `rates` gives the learning rate of each step if the
    program defines it; None leaves the rate to the optimizer. `measured_as` is the mode in which rows of an evaluation
    are read.
    """

    blocks: Blocks
    scorer: Scorer
    strategy: Strategy
    source: TaskSource
    observer: Observer
    metrics: Mapping[str, Metric]
    cancelled: threading.Event = field(default_factory=threading.Event)
    draining: threading.Event = field(default_factory=threading.Event)
    rates: Rates | None = None
    measured_as: Mode = "evaluate"
    after_steps: Callable[[Report], None] = lambda done: None
    _rate_of: int = 0  # number of the round that set the rate by its conclusion
    _leaving: bool = False
    # Marks and reports of what is trained, and not yet durable in the parameters.
    _unsettled: deque[tuple[int, Report]] = field(default_factory=deque)

    def train(self, training: Training, handler: ControlTaskHandler, total: int) -> None:
        """Do the tasks of a training job until there are none.

        `total` is the number of rows of all epochs, for the progress display. Raises JobCancelledError if `cancelled`
        is set, and DivergedError if the loss is not finite.
        """
        stops = training.early_stopping > 0
        meter = Meter(self.observer, "training", total, epochs=training.epochs, may_end_early=stops)
        calls = StepsPerCall(group=self.strategy.group)
        while not self._is_over:
            with self._read_ahead(training) as blocks:
                self._train_all(blocks, training, handler, calls, meter)
            self._flush()
            meter.show()
            while self.source.is_over("train") and not self._is_over:
                self._next_control_task(handler, None)

    def finish(self, handler: ControlTaskHandler, meter: Meter | None = None) -> None:
        """Do control tasks until the job is over."""
        while not self._is_over:
            self._next_control_task(handler, meter)

    def predict(self, results: Results, sink: ResultSink, meter: Meter) -> None:
        """Do the prediction tasks and write the result of each to `sink`."""

        def made(block: Block) -> pa.RecordBatch:
            return results.batch(block.batch, *self.scorer.predict_with(block, results.extra))

        def stage(task: Task) -> Report:
            with self._stream(task, "predict", meter) as blocks:
                batches = map(made, blocks)
                sink.stage(task.id, task.attempt, batches)
            return Report(task, task.rows)

        while not (self.source.is_over("predict") or self.draining.is_set()):
            self._check_cancelled()
            if task := self.source.next("predict"):
                self._attempt(task, partial(stage, task))

    def set_learning_rate(self, rate: float, number: int) -> None:
        """Set the rate of the following steps as round `number` requests it; requests of earlier rounds are ignored."""
        if number >= self._rate_of:
            self._rate_of = number
            self.rates = None
            self.scorer.adapter.set_learning_rate(rate)

    # Tasks --------------------------------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        """True if this worker has nothing left to do."""
        return self.source.is_over("export") or self.draining.is_set()

    def _train_all(
        self,
        blocks: Iterator[_ReadAhead],
        training: Training,
        handler: ControlTaskHandler,
        calls: StepsPerCall,
        meter: Meter,
    ) -> None:
        """Do training tasks, and control tasks between them, until there are none."""
        for item in blocks:
            if item is not None:
                self._attempt(item[0], partial(self._train, *item, training, handler, calls, meter))
                self._settle(item[0])
            elif self.source.turn():
                self._flush()
            self._do_pending_tasks(handler)
            if self.source.is_stopped or self.draining.is_set():
                return

    def _do_pending_tasks(self, handler: ControlTaskHandler) -> None:
        """Do the control tasks that wait."""
        while self.source.is_pending and not self._is_over and (task := self.source.next(*CONTROL)):
            self._do_control_task(task, handler, None)
        self._keep_postponed()

    def _keep_postponed(self) -> None:
        """Keep the weights of an epoch that has ended and is measured later."""
        if epoch := self.source.take_postponed():
            self.strategy.postpone(epoch)

    def _next_control_task(self, handler: ControlTaskHandler, meter: Meter | None) -> None:
        self._check_cancelled()
        if task := self.source.next(*CONTROL):
            self._do_control_task(task, handler, meter)

    def _attempt(self, task: Task, do: Callable[[], Report]) -> None:
        """Do the task and report it. Its error is raised unless the source assigns the task again."""
        try:
            report = do()
        except JobCancelledError:
            raise
        except VoidError:  # only the servers know how much of it is done
            self.source.give_back(Report(task))
        except _DrainedError as drained:
            if self._flush():
                self.source.give_back(drained.part)
        except Exception as error:
            if not self.source.report_failure(task, error):
                raise
        else:
            if task.type == "train":
                self._unsettled.append((self.strategy.mark(), report))
            else:
                self.source.report(report)

    def report_settled(self) -> bool:
        """Report training tasks with durable gradients and drop void ones. Return True if none is left."""
        while self._unsettled:
            mark, report = self._unsettled[0]
            valid = self.source.holds_lease(report.task)
            if valid and not self.strategy.is_durable(mark):
                return False
            self._unsettled.popleft()
            if valid:
                self.source.report(report)
        return True

    def _settle(self, task: Task) -> None:
        """Report what is settled after this task, or flush if its epoch is to be measured now, or later."""
        if task.settles:
            self._flush()
            self.strategy.remember(task.number)
            self._keep_postponed()
        else:
            self.report_settled()

    def _flush(self) -> bool:
        """Wait for all training to be durable and report it. Return False if it is void."""
        try:
            self.strategy.flush()
        except VoidError:
            return False
        self.report_settled()
        return True

    def _do_control_task(self, task: Task, handler: ControlTaskHandler, meter: Meter | None) -> None:
        def do() -> Report:
            if task.type == "evaluate":
                with self.strategy.scoring(task.round), self._stream(task, self.measured_as, meter) as blocks:
                    return measure(task, blocks, self.scorer, self.metrics)
            handle = handler.conclude if task.type == "conclude" else handler.export
            return Report(task, conclusion=handle(task.round or Round()))

        self._attempt(task, do)

    def _training_blocks(self, training: Training, end: Callable[[], bool]) -> Iterator[_ReadAhead]:
        """Yield training blocks until `end`, and None whenever control tasks are due."""
        seed = training.seed if training.shuffle else None
        while not (end() or self._leaving or self.source.is_over("train")):
            task = self.source.next("train")
            if task is None:
                yield None
                continue
            try:
                yield task, self.blocks.whole(task, seed=seed)
            except Exception as error:
                yield task, error

    def _train(
        self,
        task: Task,
        block: Block | Exception,
        training: Training,
        handler: ControlTaskHandler,
        calls: StepsPerCall,
        meter: Meter,
    ) -> Report:
        if isinstance(block, Exception):
            raise block
        if task.round is not None and task.round.rate is not None:
            self.set_learning_rate(task.round.rate, task.round.number)
        done = Report(task)
        size = training.batch_size
        for first, last in calls.pieces(task.skip, block.rows, size):
            if self.strategy.measures_between_steps:
                self._do_pending_tasks(handler)
            self._check_cancelled()
            if self.draining.is_set():
                raise _DrainedError(done)
            if not self.source.holds_lease(task):
                raise VoidError
            part = block.part(first, last)
            rows = Minibatches(part.features, part.labels, size, part.weights)
            before = self.strategy.step
            losses = self.strategy.train(rows, done, self.rates)
            self._check_finite(losses, before, task.number)
            piece = _sum(losses, last - first, size)
            done = done.plus(last - first, len(losses), piece, self.strategy.weight_of(part.weight))
            meter.add(last - first, steps=len(losses), epoch=task.number, loss=piece / (last - first))
            self.source.progress(done)
            self.after_steps(done)
        return done

    @contextlib.contextmanager
    def _stream(self, task: Task, kind: Mode, meter: Meter | None) -> Iterator[Iterator[Block]]:
        """Yield the blocks of a task in order, read ahead by a thread unless they are in memory."""
        blocks_of_task = self.blocks.stream(task, kind, self.scorer.block_rows)
        if self.blocks.are_kept(task, self.scorer.block_rows):
            yield self._count_blocks(task, blocks_of_task, meter)
            return
        with Prefetch(blocks_of_task, AHEAD) as blocks:
            yield self._count_blocks(task, blocks, meter)

    def _count_blocks(self, task: Task, blocks: Iterable[Block], meter: Meter | None) -> Iterator[Block]:
        done = 0
        for block in blocks:
            self._check_cancelled()
            if self.draining.is_set():
                raise _DrainedError(Report(task))
            if not self.source.holds_lease(task):  # another worker was quicker
                raise VoidError
            yield block
            done += block.rows
            self.source.progress(Report(task, done))
            if meter is not None:
                meter.add(block.rows)

    @contextlib.contextmanager
    def _read_ahead(self, training: Training) -> Iterator[Iterator[_ReadAhead]]:
        """Yield training blocks ahead of the steps. On exit, the reading thread no longer waits for a task.

        Once nothing is left to read, blocks are permuted between the steps: that is quick, and a third thread beside
        two that compute on two cores would hold the GIL while it waits for a core.
        """
        self._leaving = False
        blocks = Prefetch(self._training_blocks(training, end=self._needs_no_reading), AHEAD)
        try:
            yield itertools.chain(blocks, self._training_blocks(training, end=lambda: False))
        finally:
            self._leaving = True
            with self.source.awake():
                blocks.close()

    def _needs_no_reading(self) -> bool:
        return self.blocks.keeps_all_rows and not self.source.waits

    def _check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise JobCancelledError

    def _check_finite(self, losses: Floats, before: int, epoch: int) -> None:
        finite = np.isfinite(losses)
        if finite.all():
            return
        first = int(np.argmin(finite))
        raise DivergedError(
            f"the loss became {losses[first]} at step {before + first + 1:,}, in epoch {epoch}",
            hint="try a smaller learning rate (optimizer.learning_rate), or standardise features that are very large",
        )


def _sum(losses: Floats, rows: int, size: int) -> float:
    """Return the sum over rows of minibatch mean losses, of which the last may have fewer rows."""
    last = rows - (len(losses) - 1) * size
    return float(losses[:-1].sum(dtype=np.float64) * size + float(losses[-1]) * last)


SHORT, LONG = 0.05, 0.2  # seconds: shorter calls grow, longer ones shrink


class StepsPerCall:
    """Adaptive number of steps per call, a multiple of `group`. It changes no result: the minibatches stay the same."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, group: int = 1) -> None:
        self._clock = clock
        self._steps = self._group = group

    def pieces(self, first: int, rows: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield [first, last) ranges of whole minibatches. The time until the next request is the call's."""
        while first < rows:
            last = min(first + self._steps * size, rows)
            began = self._clock()
            yield first, last
            self._adapt(self._clock() - began, -(-(last - first) // size))
            first = last

    def _adapt(self, seconds: float, taken: int) -> None:
        if seconds > LONG:
            self._steps = max(1, taken // 2 // self._group) * self._group
        elif seconds < SHORT and taken == self._steps:
            self._steps *= 2
