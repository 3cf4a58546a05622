"""A training job in one process: epochs, learning curve, callbacks and final figures around the worker loop."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping

import msgspec

from edl.callbacks import Callback
from edl.data import Reader
from edl.errors import JobError
from edl.nn import Adapter, create
from edl.nn.structure import Array
from edl.program import Program, user_code
from edl.spec import Rows
from edl.tasks.events import EpochEnd, Figures, Observer, figures, finite
from edl.tasks.outcome import Outcome
from edl.tasks.task import LocalTasks, Report
from edl.worker.best import BestEpoch
from edl.worker.blocks import Blocks
from edl.worker.loop import Worker
from edl.worker.measuring import LOSS, mean_loss, measured, program_metrics
from edl.worker.rates import program_rates
from edl.worker.scoring import Scorer
from edl.worker.strategy import Local


def train(
    program: Program,
    reader: Reader,
    rows: Rows,
    *,
    weights: Mapping[str, Array] | None = None,
    observer: Observer,
    cancelled: threading.Event,
) -> tuple[Outcome, Adapter]:
    """Train the program's model on the pinned rows, which `rows` splits; what it came to, and the model.

    weights: to start from; None starts from new ones. JobError: they do not fit the model.
    """
    if not rows.training:
        raise JobError("there are no rows to train on")
    blocks = Blocks(program, reader)
    example = blocks.read(0, min(2, rows.training), "train").arrays
    adapter = create(program, example.features, example.labels, seed=program.spec.training.seed)
    if weights is not None:
        adapter.set_weights(weights)
    conductor = _Conductor(program, adapter, rows, observer)
    conductor.worker = Worker(
        blocks,
        Scorer(program, adapter, program.spec.batch_size),
        conductor.tasks,
        observer,
        cancelled,
        program_rates(program),
    )
    return conductor.run(), adapter


def split(rows: Rows, total: int, validation_fraction: float, held_out: int = 0) -> Rows:
    """Which of `total` rows are trained on: as the JobSpec says, where it was made from as many rows.

    held_out: how many of them, the last, come from a query of their own.
    """
    if rows.pinned and rows.total == total:
        return rows
    validation = held_out or int(total * validation_fraction)
    return msgspec.structs.replace(rows, total=total, training=total - validation, validation=validation)


class _Conductor:
    """Hears of epochs and rounds, keeps the curve, and lets callbacks steer."""

    worker: Worker

    def __init__(self, program: Program, adapter: Adapter, rows: Rows, observer: Observer) -> None:
        self._program = program
        self._training = program.spec.training
        self._adapter = adapter
        self._rows = rows
        self._observer = observer
        self._metrics = program_metrics(program)
        self._callbacks = _callbacks(program)
        self._curve: list[EpochEnd] = []
        self._trained_rows = 0
        self._epoch_loss = math.nan
        self._final: Figures = {}
        self._stopped = ""
        self._best = BestEpoch(self._training, adapter.get_weights)
        self._began = time.monotonic()
        self.tasks = LocalTasks(rows.training, self._training, self)

    def run(self) -> Outcome:
        self._tell_callbacks(lambda callback: callback.on_train_begin(self))
        size = self._training.batch_size
        total = self._rows.training * self._training.epochs
        limit = self._training.max_steps * size or total
        self.worker.train(self._training, Local(self._adapter), self._metrics, min(total, limit))
        seconds = time.monotonic() - self._began
        if not self._rows.validation:
            self.tasks.queue("evaluate", 0, self._rows.training)
            self.worker.evaluate(self._metrics)
        kept = self._keep_best()
        self._tell_callbacks(lambda callback: callback.on_train_end(_known(self._final)))
        return Outcome(
            kind="train",
            rows=self._trained_rows,
            seconds=seconds,
            steps=self.worker.step,
            epochs=len(self._curve),
            kept_epoch=kept,
            loss=finite(self._epoch_loss),
            figures=self._final,
            measured_on="validation" if self._rows.validation else "training",
            curve=tuple(self._curve),
            stopped=self._stopped,
        )

    def _keep_best(self) -> int:
        """Go back to the best epoch where that is wanted; its number, 0 when the last step's weights stay."""
        standing = self._best.standing
        if self._best.kept is None or standing.best == len(self._curve):
            return 0
        self._adapter.set_weights(self._best.kept)
        self._final = standing.figures
        return standing.best

    # Listener of the tasks -------------------------------------------------------------------------------

    def epoch_done(self, epoch: int, reports: list[Report]) -> None:
        self._epoch_loss = mean_loss(reports)
        self._trained_rows += sum(report.task.rows for report in reports)
        if self._rows.validation:
            self.tasks.queue(
                "evaluate", self._rows.training, self._rows.training + self._rows.validation, epoch
            )
        else:
            self._end_epoch(epoch, {})

    def round_done(self, epoch: int, reports: list[Report]) -> None:
        self._final = figures(measured(reports, self._metrics))
        if epoch:
            self._end_epoch(epoch, self._final)

    def _end_epoch(self, epoch: int, validation: Figures) -> None:
        seconds = time.monotonic() - self._began
        row = EpochEnd(epoch, self.worker.step, finite(self._epoch_loss), validation, seconds)
        self._curve.append(row)
        self._observer(row)
        if validation:
            self._best.heard(epoch, validation)
            if self._best.exhausted:
                self.stop_training(f"no lower held-out loss in {self._best.standing.since} epochs")
        known = {
            ("validation_loss" if name == LOSS else name): value for name, value in _known(validation).items()
        }
        told = {LOSS: self._epoch_loss, **known}
        self._tell_callbacks(lambda callback: callback.on_epoch_end(epoch, told, self))

    def _tell_callbacks(self, tell: Callable[[Callback], None]) -> None:
        with user_code(self._program.file, "a callback"):
            for callback in self._callbacks:
                tell(callback)

    # Control of the callbacks ----------------------------------------------------------------------------

    def stop_training(self, reason: str) -> None:
        self._stopped = self._stopped or reason
        self.tasks.stop()

    def set_learning_rate(self, rate: float) -> None:
        self.worker.rates = None
        self._adapter.set_learning_rate(rate)


def _known(values: Figures) -> dict[str, float]:
    return {name: math.nan if value is None else value for name, value in values.items()}


def _callbacks(program: Program) -> list[Callback]:
    if not program.has("callbacks"):
        return []
    given = program.call("callbacks")
    for callback in given:
        if not isinstance(callback, Callback):
            raise JobError(
                f"callbacks in {program.file} gives a {type(callback).__name__}, which is no edl.Callback",
                hint="from edl import Callback, and derive from it",
            )
    return list(given)
