"""PREDICT and EVALUATE in one process, with the weights of a trained model."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from edl.data import Reader
from edl.data.results import ResultFolder
from edl.errors import JobError
from edl.metrics import AUC, Metric
from edl.nn import create
from edl.nn.structure import Array
from edl.program import Mode, Program
from edl.tasks.events import Figures, Observer, figures
from edl.tasks.outcome import Outcome
from edl.tasks.task import LocalTasks, Report
from edl.worker.blocks import Blocks
from edl.worker.loop import Worker
from edl.worker.measuring import measured, program_metrics
from edl.worker.meter import Meter
from edl.worker.prediction import Results, results
from edl.worker.scoring import Scorer


def predict(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    folder: ResultFolder,
    *,
    observer: Observer,
    cancelled: threading.Event,
) -> Outcome:
    """Predict the pinned rows, in their order, into `folder`."""
    began = time.monotonic()
    wanted = results(program)
    if not reader.rows:
        folder.stage(0, 0, [_no_rows(wanted, reader.schema)])
        return Outcome("predict", 0, time.monotonic() - began, tasks=1)
    tasks = LocalTasks(0, program.spec.training)
    files = tasks.queue("predict", 0, reader.rows)
    worker = _worker(program, reader, weights, "predict", tasks, observer, cancelled)
    worker.predict(wanted, folder, Meter(observer, "prediction", reader.rows))
    return Outcome("predict", reader.rows, time.monotonic() - began, tasks=files)


def evaluate(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    folder: ResultFolder,
    *,
    observer: Observer,
    cancelled: threading.Event,
) -> Outcome:
    """Measure the model on the pinned rows; the figures go into `folder` as a table of one row too."""
    began = time.monotonic()
    if not reader.rows:
        raise JobError("there are no rows to evaluate on")
    metrics = {name: _exact(metric) for name, metric in program_metrics(program).items()}
    rounds = _Round()
    tasks = LocalTasks(0, program.spec.training, rounds)
    tasks.queue("evaluate", 0, reader.rows)
    worker = _worker(program, reader, weights, "evaluate", tasks, observer, cancelled)
    worker.evaluate(metrics, Meter(observer, "evaluation", reader.rows))
    found = figures(measured(rounds.reports, metrics))
    folder.stage(0, 0, [_one_row(found)])
    seconds = time.monotonic() - began
    return Outcome("evaluate", reader.rows, seconds, figures=found, measured_on="all", tasks=1)


class _Round:
    """Keeps the reports of the one round of an evaluation job."""

    reports: list[Report]

    def epoch_done(self, epoch: int, reports: list[Report]) -> None:
        """There is no training."""

    def round_done(self, epoch: int, reports: list[Report]) -> None:
        self.reports = reports


def _worker(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    mode: Mode,
    tasks: LocalTasks,
    observer: Observer,
    cancelled: threading.Event,
) -> Worker:
    blocks = Blocks(program, reader)
    example = blocks.read(0, min(2, reader.rows), mode)
    labels = None if mode == "predict" else example.arrays.labels
    adapter = create(program, example.arrays.features, labels, seed=program.spec.training.seed)
    adapter.set_weights(weights)
    return Worker(blocks, Scorer(program, adapter, program.spec.batch_size), tasks, observer, cancelled)


def _exact(metric: Metric) -> Metric:
    """Training rounds the AUC's scores to keep states small; a figure that is asked for is exact."""
    return AUC(exact=True) if isinstance(metric, AUC) else metric


def _no_rows(wanted: Results, schema: pa.Schema) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist([], schema=schema)
    return wanted.batch(batch, np.empty((0, wanted.classes)))


def _one_row(found: Figures) -> pa.RecordBatch:
    columns = {name: pa.array([value], type=pa.float64()) for name, value in found.items()}
    return pa.RecordBatch.from_pydict(columns)
