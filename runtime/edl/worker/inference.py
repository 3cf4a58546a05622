"""PREDICT and EVALUATE in one process, with the weights of a trained model."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from edl.data import Reader
from edl.data.results import ResultSink
from edl.errors import JobError
from edl.metrics import AUC, Metric
from edl.nn import create
from edl.nn.structure import Array
from edl.program import Mode, Program
from edl.tasks.events import Figures, Observer
from edl.tasks.job import Plan
from edl.tasks.local import LocalTasks
from edl.tasks.outcome import Outcome
from edl.tasks.ranges import STREAMED_ROWS, partition
from edl.tasks.task import Conclusion, Course, Round, TaskSource
from edl.worker.blocks import Blocks
from edl.worker.loop import Worker
from edl.worker.measuring import measured, program_metrics
from edl.worker.meter import Meter
from edl.worker.prediction import Results, results
from edl.worker.scoring import Scorer
from edl.worker.strategy import Local


def predict(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    sink: ResultSink,
    *,
    observer: Observer,
    cancelled: threading.Event,
) -> Outcome:
    """Predict the pinned rows, in their order, into `sink`."""
    began = time.monotonic()
    tasks = LocalTasks(Plan("predict", reader.rows))
    wanted = results(program)
    if not reader.rows:
        sink.stage(0, 0, [_no_rows(wanted, reader.schema)])
        return Outcome("predict", 0, time.monotonic() - began, tasks=1)
    worker = scoring_worker(program, reader, weights, "predict", tasks, observer, cancelled)
    worker.predict(wanted, sink, Meter(observer, "prediction", reader.rows))
    return Outcome(
        "predict", reader.rows, time.monotonic() - began, tasks=len(partition(0, reader.rows, STREAMED_ROWS))
    )


def evaluate(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    sink: ResultSink,
    *,
    observer: Observer,
    cancelled: threading.Event,
) -> Outcome:
    """Measure the model on the pinned rows; the figures go into `sink` as a table of one row too."""
    if not reader.rows:
        raise JobError("there are no rows to evaluate on")
    tasks = LocalTasks(Plan("evaluate", reader.rows))
    worker = scoring_worker(program, reader, weights, "evaluate", tasks, observer, cancelled)
    worker.finish(Measuring(worker.metrics, sink), Meter(observer, "evaluation", reader.rows))
    outcome = tasks.job.state.outcome
    if outcome is None:
        raise RuntimeError("an evaluation that is over has figures")
    return outcome


class Measuring:
    """The end of an evaluation: its figures, as a table of one row in `sink` too."""

    def __init__(self, metrics: Mapping[str, Metric], sink: ResultSink) -> None:
        self._metrics = metrics
        self._sink = sink

    def conclude(self, found: Round) -> Conclusion:
        raise RuntimeError("an evaluation has one round, which the export ends")

    def export(self, found: Round) -> Conclusion:
        course = found.course or Course()
        values = measured(found.measured, self._metrics)
        self._sink.stage(0, 0, [_one_row(values)])
        rows = found.measured.rows
        outcome = Outcome("evaluate", rows, course.seconds, figures=values, measured_on="all", tasks=1)
        return Conclusion(values, outcome=outcome)


def scoring_worker(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    mode: Mode,
    tasks: TaskSource,
    observer: Observer,
    cancelled: threading.Event,
    draining: threading.Event | None = None,
) -> Worker:
    """A worker with the model's weights; its metrics are exact."""
    blocks = Blocks(program, reader)
    example = blocks.read(0, min(2, reader.rows), mode)
    labels = None if mode == "predict" else example.arrays.labels
    adapter = create(program, example.arrays.features, labels, seed=program.spec.training.seed)
    adapter.set_weights(weights)
    metrics = {} if mode == "predict" else program_metrics(program)
    exact = {name: _exact(metric) for name, metric in metrics.items()}
    scorer = Scorer(program, adapter, program.spec.batch_size)
    return Worker(
        blocks, scorer, Local(adapter), tasks, observer, exact, cancelled, draining or threading.Event()
    )


def _exact(metric: Metric) -> Metric:
    """Training rounds the AUC's scores to keep states small; a figure that is asked for is exact."""
    return AUC(exact=True) if isinstance(metric, AUC) else metric


def _no_rows(wanted: Results, schema: pa.Schema) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist([], schema=schema)
    return wanted.batch(batch, np.empty((0, wanted.classes)))


def _one_row(found: Figures) -> pa.RecordBatch:
    columns = {name: pa.array([value], type=pa.float64()) for name, value in found.items()}
    return pa.RecordBatch.from_pydict(columns)
