"""The worker loop: take a task, do it, report it.

There is one loop, for every kind of job, strategy and framework. What varies is composed into it: the task source
(in process, or a master), the adapter (Keras, PyTorch) and the strategy (local, parameter servers, all-reduce).
Reading and transforming run in a thread of their own, ahead of the steps; an evaluation that is asked for goes
between two training tasks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from edl.data.results import ResultFolder
from edl.errors import JobError
from edl.metrics import Metric
from edl.nn import Minibatches
from edl.nn.adapter import Floats
from edl.program import Mode
from edl.spec import Training
from edl.tasks.events import Observer
from edl.tasks.outcome import JobCancelledError
from edl.tasks.task import LEAST_ROWS, Report, Task, TaskSource
from edl.worker.blocks import Arrays, Block, Blocks
from edl.worker.measuring import measure
from edl.worker.meter import Meter
from edl.worker.pace import Pace
from edl.worker.prediction import Results
from edl.worker.prefetch import Prefetch
from edl.worker.rates import Rates
from edl.worker.scoring import Scorer
from edl.worker.strategy import Strategy

AHEAD = 2  # blocks that are read in front of the steps


@dataclass
class Worker:
    """Does the tasks of `source`. `cancelled`, set from any thread, stops it between two calls of the model.

    rates: of the steps, where a program has them; None leaves the rate to the optimizer.
    """

    blocks: Blocks
    scorer: Scorer
    source: TaskSource
    observer: Observer
    cancelled: threading.Event = field(default_factory=threading.Event)
    rates: Rates | None = None
    step: int = 0
    _pace: Pace = field(default_factory=Pace)

    def train(
        self, training: Training, strategy: Strategy, metrics: Mapping[str, Metric], total: int
    ) -> None:
        """Do training tasks until there are none, and the evaluations that are asked for between them.

        total: rows of all epochs together, for the progress. JobCancelledError: `cancelled` was set. JobError: the
        loss is no number any more.
        """
        meter = Meter(self.observer, "training", total, epochs=training.epochs)
        with Prefetch(self._training_blocks(training), AHEAD) as blocks:
            for task, block in blocks:
                self.source.report(self._train(task, block, training.batch_size, strategy, meter))
                began = time.monotonic()
                while self.source.evaluation_pending:
                    self.evaluate(metrics)
                meter.pause(time.monotonic() - began)
                if self.source.stopped:
                    break
        meter.tell()

    def evaluate(self, metrics: Mapping[str, Metric], meter: Meter | None = None) -> None:
        """Do the evaluation tasks that wait."""
        self._stream("evaluate", lambda task, blocks: measure(task, blocks, self.scorer, metrics), meter)

    def predict(self, results: Results, folder: ResultFolder, meter: Meter) -> None:
        """Do the prediction tasks, each into a file of `folder`."""

        def stage(task: Task, blocks: Iterable[Block]) -> Report:
            batches = (results.batch(block.batch, self.scorer.predict(block)) for block in blocks)
            folder.stage(task.id, task.attempt, batches)
            return Report(task)

        self._stream("predict", stage, meter)

    def _training_blocks(self, training: Training) -> Iterator[tuple[Task, Block]]:
        seed = training.seed if training.shuffle else None
        while (task := self.source.next("train")) is not None:
            yield task, self.blocks.whole(task, seed=seed)

    def _train(self, task: Task, block: Block, size: int, strategy: Strategy, meter: Meter) -> Report:
        loss, steps = 0.0, 0
        for first, last in self._pace.pieces(block.rows, size):
            self._check_cancelled()
            losses = strategy.train(self._minibatches(block.part(first, last), size))
            self._check_finite(losses, task.epoch)
            piece = _sum(losses, last - first, size)
            loss += piece
            steps += len(losses)
            self.step += len(losses)
            meter.add(last - first, steps=len(losses), epoch=task.epoch, loss=piece / (last - first))
        return Report(task, steps, loss, block.arrays.weight)

    def _minibatches(self, rows: Arrays, size: int) -> Minibatches:
        steps = -(-len(rows.labels) // size)
        rates = self.rates(self.step, steps) if self.rates else None
        return Minibatches(rows.features, rows.labels, size, rows.weights, rates)

    def _stream(self, kind: Mode, do: Callable[[Task, Iterable[Block]], Report], meter: Meter | None) -> None:
        """Do all tasks of a kind that streams its rows; the next task is read while this one is done."""
        rows = -(-LEAST_ROWS // self.scorer.rows) * self.scorer.rows
        while (task := self.source.next(kind)) is not None:
            with Prefetch(self.blocks.stream(task, kind, rows), AHEAD) as blocks:
                self.source.report(do(task, self._counted(blocks, meter)))

    def _counted(self, blocks: Iterable[Block], meter: Meter | None) -> Iterator[Block]:
        for block in blocks:
            self._check_cancelled()
            yield block
            if meter is not None:
                meter.add(block.rows)

    def _check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise JobCancelledError

    def _check_finite(self, losses: Floats, epoch: int) -> None:
        finite = np.isfinite(losses)
        if finite.all():
            return
        first = int(np.argmin(finite))
        raise JobError(
            f"the loss became {losses[first]} at step {self.step + first + 1:,}, in epoch {epoch}",
            hint="try a smaller learning rate (optimizer.learning_rate), or standardise features that are very large",
        )


def _sum(losses: Floats, rows: int, size: int) -> float:
    """The sum over rows of the losses of minibatches, of which the last may be smaller."""
    last = rows - (len(losses) - 1) * size
    return float(losses[:-1].sum(dtype=np.float64) * size + float(losses[-1]) * last)
