"""Training of a model: callbacks, the best epoch, checkpoints and the export around the worker loop."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping

import msgspec

from edl.arrays import Array
from edl.checkpoints import GoneError
from edl.checkpoints.trainer import TrainerCheckpoint, TrainerPosition
from edl.data import Reader
from edl.errors import JobError
from edl.evaluation.calibrating import calibration_notes
from edl.evaluation.measuring import compute_figures, training_metrics, uncertainty
from edl.evaluation.scoring import Scorer
from edl.frameworks import Adapter, create
from edl.input.blocks import Blocks
from edl.input.cache import ArrayCache
from edl.jobs.events import Figures, Observer
from edl.jobs.outcome import JobInterruptedError, Outcome, epoch_of
from edl.logs import log
from edl.metrics import Metric
from edl.models.weights import Weights
from edl.program import Program
from edl.spec import TREES, AnomalyLabel, ClusterLabel, Rows
from edl.tasks.job_state import plan
from edl.tasks.local import LocalTasks
from edl.tasks.task import Conclusion, JobProgress, Report, Round, Task, TaskSource
from edl.worker.callbacks import Callbacks
from edl.worker.checkpointing import Checkpointer
from edl.worker.learning_rate import program_rates
from edl.worker.loop import Worker
from edl.worker.strategies.base import Local, Strategy

FIRST_ROWS = {ClusterLabel: 4096, AnomalyLabel: 16_384}  # for the first centres, and for the samples of trees
END_SECS = 5.0  # wait for a checkpoint in progress when the job is over
Export = Callable[[Outcome, Weights], Outcome]  # writes the model; returns the outcome with its location


def train(
    program: Program,
    reader: Reader,
    rows: Rows,
    *,
    weights: Mapping[str, Array] | None = None,
    observer: Observer,
    cancelled: threading.Event,
    export: Export = lambda outcome, weights: outcome,
    prepare: Callable[[Trainer, LocalTasks], None] = lambda trainer, tasks: None,
    only_loss: bool = False,
) -> tuple[Outcome, Adapter]:
    """Train the program's model on the pinned rows, split by `rows`; return the outcome and the model's adapter.

    `weights` are the initial ones, or None for new ones. `prepare` is called before the first step. only_loss: nothing
    else is measured after an epoch. Raises JobError if there are no rows to train on, or the weights don't fit the
    model; JobInterruptedError if the worker was made to leave before the end.
    """
    if not rows.training:
        raise JobError("there are no rows to train on")
    tasks = LocalTasks(plan(program.spec, rows), observer)
    trainer = Trainer(
        program,
        reader,
        rows,
        tasks,
        observer,
        export,
        cancelled=cancelled,
        weights=weights,
        metrics={} if only_loss else None,
    )
    prepare(trainer, tasks)
    trainer.run()
    outcome = tasks.job.state.outcome
    if outcome is None:
        raise JobInterruptedError
    return outcome, trainer.adapter


def split(rows: Rows, total: int, validation_fraction: float, validation: int | None = None) -> Rows:
    """Split `total` rows into training and validation rows; the JobSpec's split is kept if it was made for as many
    rows.

    `validation` is the number of validation rows, which come last, if the pinning or a query of their own determined
    it.
    """
    if rows.pinned and rows.total == total:
        return rows
    validation = int(total * validation_fraction) if validation is None else validation
    return msgspec.structs.replace(rows, total=total, training=total - validation, validation=validation)


class Trainer:
    """Trainer of one model: the worker loop, evaluation of epochs, callbacks, and the export at the end.

    `weights` are the initial ones. `strategy` is a factory that gets the adapter, which has the weights. metrics: in
    place of the program's.
    """

    def __init__(
        self,
        program: Program,
        reader: Reader,
        rows: Rows,
        tasks: TaskSource,
        observer: Observer,
        export: Export,
        *,
        cancelled: threading.Event | None = None,
        weights: Mapping[str, Array] | None = None,
        strategy: Callable[[Adapter], Strategy] = Local,
        metrics: Mapping[str, Metric] | None = None,
    ) -> None:
        self._program = program
        self._rows = rows
        self._export = export
        blocks = _blocks(program, reader, rows.training, lambda: self._strategy.part)
        example = blocks.read(0, min(_examples(program), rows.training), "train").arrays
        seed = program.spec.training.seed
        self.adapter = create(program, example.features, example.labels, seed=seed)
        if weights is not None:
            self.adapter.set_weights(weights)
        self._strategy = strategy(self.adapter)
        if isinstance(self._strategy, Local):
            self._strategy.measures = bool(rows.validation)
        self._callbacks = Callbacks(program, self)
        self._stop = ""
        self._first_rate = self.adapter.learning_rate(0)
        self._rate: float | None = None
        self._round = 0  # number of the round that is being concluded
        self._checkpointer: Checkpointer | None = None
        self._may_checkpoint: Callable[[], bool] = lambda: True
        self._unconcluded: Callable[[], int] = lambda: 0
        self.worker = Worker(
            blocks,
            Scorer(program, self.adapter, program.spec.batch_size),
            self._strategy,
            tasks,
            observer,
            training_metrics(program) if metrics is None else metrics,
            cancelled or threading.Event(),
            rates=program_rates(program),
        )

    def run(self) -> None:
        """Train until the job is over."""
        training = self._program.spec.training
        self._callbacks.begin()
        total = self._rows.training * training.epochs
        limit = training.max_steps * training.batch_size or total
        self.worker.train(training, self, min(total, limit))
        if self.worker.draining.is_set():
            self._leave()
        if self._checkpointer is not None:
            self._checkpointer.wait(None if self.worker.draining.is_set() else END_SECS)

    # Checkpoints --------------------------------------------------------------------------------------------

    def write_checkpoints(
        self,
        checkpointer: Checkpointer,
        *,
        may: Callable[[], bool] = lambda: True,
        unconcluded: Callable[[], int] = lambda: 0,
    ) -> None:
        """Write checkpoints when they are due and before leaving.

        `may` returns True if this worker is the one to write. For `unconcluded` see `TrainerPosition`.
        """
        self._checkpointer = checkpointer
        self._may_checkpoint, self._unconcluded = may, unconcluded
        self.worker.after_steps = self._after_steps

    def resume(self, checkpoint: TrainerCheckpoint) -> None:
        """Resume from the checkpoint. Raises JobError if it is of another program."""
        self.adapter.set_weights(checkpoint.weights)
        self.adapter.set_state(checkpoint.state)
        local = self._local()
        local.step = checkpoint.position.step
        local.kept = {} if checkpoint.best is None else {checkpoint.position.best: checkpoint.best}
        self._callbacks.resume(checkpoint.position.notified)

    def _after_steps(self, done: Report) -> None:
        checkpointer = self._checkpointer
        if checkpointer is None or not self._may_checkpoint():
            return
        if checkpointer.is_due(self._strategy.step) and len(self._best) <= 1 and self.worker.report_settled():
            checkpointer.take(self._checkpoint, self._strategy.step, done)

    def _leave(self) -> None:
        """Write a checkpoint before leaving, in case no other worker holds the weights."""
        if self._checkpointer is None or not self._strategy.step:
            return
        self.worker.report_settled()
        if self._may_checkpoint() and len(self._best) <= 1:
            self._checkpointer.take(self._checkpoint, self._strategy.step, Report(Task(0, "train")))

    def _checkpoint(self) -> Callable[[], TrainerCheckpoint]:
        epoch, best = next(iter(self._best.items()), (0, None))
        position = TrainerPosition(self._local().step, self._callbacks.logs, epoch, self._unconcluded())
        cut = self.adapter.cut()
        return lambda: TrainerCheckpoint(position, *cut(), best)

    @property
    def _best(self) -> dict[int, Mapping[str, Array]]:
        """Kept weights by epoch, without the epoch that is not concluded. More than one: the best is not known yet."""
        ended = self._unconcluded()
        return {epoch: weights for epoch, weights in self._local().kept.items() if epoch != ended}

    def _local(self) -> Local:
        """Return the strategy as one that holds the weights; only such a worker writes checkpoints."""
        if not isinstance(self._strategy, Local):
            raise RuntimeError("parameter servers write their own checkpoints")
        return self._strategy

    # Control tasks ------------------------------------------------------------------------------------------

    def conclude(self, round_: Round) -> Conclusion:
        """Return the figures of a round and the decision to stop."""
        metrics, on = self.worker.metrics, round_.measured_on
        values = compute_figures(round_.measured, metrics) if on else {}
        self._strategy.release(round_)
        self._round, self._rate = round_.number, None
        if round_.epoch and round_.final:
            self._end_epoch(round_, values)
        return Conclusion(
            values,
            self._stop,
            rate=self._rate,
            callbacks=bool(self._callbacks),
            uncertainty=uncertainty(round_.measured, metrics) if on == "validation" else None,
        )

    def export(self, round_: Round) -> Conclusion:
        """Write the model, with the weights of the best epoch if the JobSpec says so."""
        progress = round_.progress or JobProgress()
        best_epoch = progress.standing.best if self._program.spec.training.keep == "best" else 0
        kept, weights = self._weights(best_epoch)
        of_model = progress.standing if kept else progress  # figures and uncertainty of the exported weights
        self._callbacks.end(of_model.figures)
        outcome = Outcome(
            kind="train",
            rows=progress.rows,
            seconds=progress.seconds,
            steps=progress.steps,
            epochs=progress.epochs,
            by_rounds=self._program.spec.framework in TREES,
            kept_epoch=kept if kept != progress.epochs else 0,
            lost_epoch=best_epoch if best_epoch != kept else 0,
            loss=progress.curve[-1].loss if progress.curve else None,
            figures=of_model.figures,
            measured_on=progress.measured_on,
            curve=progress.curve,
            stopped=progress.stopped,
            uncertainty=of_model.uncertainty,
            notes=calibration_notes(self._program.spec, of_model.uncertainty),
        )
        return Conclusion(of_model.figures, outcome=self._export(outcome, weights))

    def _weights(self, epoch: int) -> tuple[int, Weights]:
        """Return the epoch and its weights, or 0 and the present weights if those are lost."""
        try:
            return epoch, self._strategy.weights(epoch)
        except GoneError as error:
            log(f"{error}: the model is that of the last step")
            return 0, self._strategy.weights(0)

    def _end_epoch(self, round_: Round, values: Figures) -> None:
        training = self._program.spec.training
        self._callbacks.end_epochs(round_.curve)
        if values:
            now = round_.standing.after(round_.epoch, values, training.min_delta)
            if training.keep == "best" and now.best == round_.epoch:
                self._strategy.keep(round_.epoch)
            if 0 < training.early_stopping <= now.since:
                epochs = f"{epoch_of(self._program.spec.framework in TREES)}s"
                self.stop_training(f"no lower validation loss in {now.since} {epochs}")
        self._strategy.drop(round_.epoch)
        self._callbacks.end_epoch(round_.epoch, round_.trained.mean_loss, values)

    # Control of the callbacks ----------------------------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        return self._first_rate

    def stop_training(self, reason: str) -> None:
        self._stop = self._stop or reason

    def set_learning_rate(self, rate: float) -> None:
        self._rate = rate
        self.worker.set_learning_rate(rate, self._round)


def _blocks(program: Program, reader: Reader, rows: int, part: Callable[[], tuple[int, int]]) -> Blocks:
    """Return the input of a training. Trees are grown from all rows at once, which they hold in memory anyway."""
    if program.spec.framework not in TREES:
        return Blocks(program, reader, rows=rows, part=part)
    kept, measured = ArrayCache(sys.maxsize), ArrayCache(sys.maxsize)
    if program.spec.training.disk_cache:
        return Blocks(program, reader, kept, rows, part=part, on_disk=True)
    return Blocks(program, reader, kept, rows, measured=measured, part=part)


def _examples(program: Program) -> int:
    """Return the number of rows from which the model is built: two show the shapes, more give centres or trees."""
    return FIRST_ROWS.get(type(program.spec.label), 2)
