"""`edl.train`: train a model of a script or a notebook, in this process or with workers."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import msgspec
import numpy as np

from edl import frameworks
from edl.arrays import Array, Features, checked_features, count_rows, map_arrays
from edl.callbacks import Callback
from edl.cli import distributed
from edl.cli.progress import ProgressNarrator
from edl.data import Reader
from edl.errors import JobError, SQLFlowError
from edl.frameworks import Adapter
from edl.frameworks.adapter import with_gradients
from edl.input.blocks import Blocks
from edl.jobs import job_folder as jobs
from edl.jobs.cores import available_cores
from edl.jobs.events import Figures, JobObserver, ignore
from edl.jobs.failure import Failed, to_error, to_failed
from edl.jobs.outcome import Outcome
from edl.models import weights as weight_files
from edl.models.archive import read_archive
from edl.program import Program
from edl.program.user_code import IN_LOG
from edl.run import job_runner
from edl.run.archive import curve_row
from edl.run.foreground import job_folder
from edl.scripting import script
from edl.scripting.call import Metrics, Rate, TrainCall, call, job_spec
from edl.scripting.datasets import Feed
from edl.scripting.options import Options, check_options
from edl.spec import JobSpec, Rows
from edl.spec.strategy import complete_settings
from edl.tasks.ranges import LEAST_ROWS, partition
from edl.worker.callbacks import program_callbacks
from edl.worker.trainer import train as train_here


@dataclass(frozen=True)
class Trained:
    """Result of `edl.train`.

    `model` has the trained weights. `history` has a row for each epoch, figures by name. `metrics` are the loss and
    the metrics over the validation rows, or over all rows if there are none. `outcome` holds all details.
    """

    model: Any
    history: Sequence[Figures] = field(repr=False)
    metrics: Figures
    outcome: Outcome = field(repr=False)
    _adapter: Adapter | None = field(repr=False)  # None in a worker for the job of a later call

    def predict(self, features: Features) -> Array:
        """Return the model's outputs, also of one with row tables. Raises JobError in a worker."""
        if self._adapter is None:
            raise JobError(
                "a worker at this call has not trained the model",
                hint="give each edl.train with workers a script of its own, and rows that are files",
            )
        adapter = self._adapter
        rows = count_rows(features)
        checked = checked_features(features, rows, "the caller")

        def outputs(first: int, last: int) -> Array:
            return adapter.predict(map_arrays(lambda array: array[first:last], checked))

        return np.concatenate([outputs(*part) for part in partition(0, rows, LEAST_ROWS)])


def train(
    model: Any,
    dataset: Any,
    *,
    loss: Any,
    optimizer: Any,
    epochs: int = 1,
    batch_size: int = 64,
    validation: Any = None,
    metrics: Metrics = (),
    feed: Feed | None = None,
    scores: Callable[[Any], Any] | None = None,
    learning_rate: Rate | None = None,
    callbacks: Sequence[Callback] = (),
    workers: int = 1,
    **options: Unpack[Options],
) -> Trained:
    """Train the model on the rows of the dataset.

    `model`: a keras.Model, a torch.nn.Module, or a function that makes one. `dataset`: see `edl.scripting.datasets`;
    float labels (n, 1) or (n,), classes int64 (n,). `loss`, `optimizer`: an object, a function or a name of the
    framework; a function is called as the framework calls it, loss(labels, outputs) in Keras, loss(outputs, labels)
    in PyTorch. `validation`: rows like the dataset's, or a fraction of them. `metrics`: names, or metrics of
    `edl.metrics`. `scores`: converts the model's outputs to the scores of metrics. `learning_rate`: of an optimizer
    by name, or a function of the steps' numbers. `options`: see `Options`.

    With several workers, each runs the script up to this call and continues inside; the call returns only in the
    process of the script itself. Raises SemanticError for an invalid argument, JobError if training fails.
    """
    file = Path(sys._getframe(1).f_code.co_filename)
    with _add_hints_to_tracebacks():
        options = check_options(options)
        called = call(
            model,
            dataset,
            loss=loss,
            optimizer=optimizer,
            validation=validation,
            metrics=metrics,
            feed=feed,
            scores=scores,
            learning_rate=learning_rate,
            callbacks=callbacks,
            options=options,
            file=file,
        )
        doing = script.inside()
        if doing is not None:
            return _continue_in_worker(called, doing)
        try:
            trained = _train(
                called, job_spec(called, epochs, batch_size, validation, workers, options), options
            )
        except BaseException as error:
            script.record_end(to_failed(error, ""))
            raise
        script.record_end(trained.outcome)
        return trained


@contextlib.contextmanager
def _add_hints_to_tracebacks() -> Iterator[None]:
    """Add an error's hint to its traceback, unless the cause shown there makes it redundant."""
    try:
        yield
    except SQLFlowError as error:
        if error.hint and not (error.hint == IN_LOG and error.__cause__):
            error.add_note(f"hint: {error.hint}")
        raise


def _continue_in_worker(called: TrainCall, doing: script.Inside) -> Trained:
    """Continue in a worker: return the result of a call before the job's; the job's own call never returns."""
    end = next(doing.earlier, None)
    if end is None:
        doing.enter(lambda: called.program(doing.spec, doing.folder))
    if isinstance(end, Failed):
        raise to_error(end)
    return _make_result(called.model, end, None)


def _train(called: TrainCall, spec: JobSpec, options: Options) -> Trained:
    started = None if complete_settings(spec.cluster).strategy == "local" else script.current_script()
    on_event: JobObserver = ProgressNarrator(sys.stderr) if options.get("verbose", True) else ignore
    job_runner.prepare(spec, options.get("threads") or available_cores(), own_process=False)
    with job_folder("train", spec.statement) as job:
        called.rows.pin(job)
        program = called.program(spec, job.program)
        pinned, reader = job_runner.rows_of(program, job)
        rows, _ = job_runner.training(program, job, pinned, reader)
        if started is None:
            cancelled = threading.Event()
            outcome, adapter = train_here(
                program, reader, rows, observer=on_event, cancelled=cancelled, export=_in_place
            )
        else:
            adapter = _build_model_once(program, reader, rows)
            kept = msgspec.structs.replace(rows, pinned=True, digest=pinned.digest)
            shared = complete_settings(spec.cluster, with_gradients(adapter).tables.largest)
            full = msgspec.structs.replace(spec, rows=kept, cluster=shared)
            script.write(job, started)
            try:
                outcome = _with_workers(job, full, adapter, options, on_event)
            finally:
                script.forget(job)
        return _make_result(called.model, outcome, adapter)


def _build_model_once(program: Program, reader: Reader, rows: Rows) -> Adapter:
    """Build the model as each worker does, to find errors of it or of callbacks before workers are started."""
    program_callbacks(program)
    if not rows.training:
        raise JobError("there are no rows to train on")
    example = Blocks(program, reader).read(0, min(2, rows.training), "train").arrays
    return frameworks.create(program, example.features, example.labels, seed=program.spec.training.seed)


def _with_workers(
    job: jobs.JobFolder, spec: JobSpec, adapter: Adapter, options: Options, on_event: JobObserver
) -> Outcome:
    """Train with workers, starting from the model's current weights, and load the trained ones into it."""
    weight_files.save(adapter.get_weights(), job.weights)
    quota = options.get("quota")
    folder = None if quota is None else Path(quota)
    outcome = distributed.follow(job, spec, options.get("threads"), on_event, folder)
    adapter.set_weights(read_archive(job.archive).weights())
    return outcome


def _in_place(outcome: Outcome, weights: weight_files.Weights) -> Outcome:
    """Return the outcome; the model already has the weights."""
    return outcome


def _make_result(model: Any, outcome: Outcome, adapter: Adapter | None) -> Trained:
    return Trained(model, tuple(map(curve_row, outcome.curve)), outcome.figures, outcome, adapter)
