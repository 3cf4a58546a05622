"""PREDICT, EVALUATE and EXPLAIN in one process, with the weights of a trained model."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from edl.data import Reader, figures
from edl.data.results import ResultSink
from edl.errors import JobError
from edl.metrics import AUC, Metric
from edl.nn import create
from edl.nn.structure import Array
from edl.program import Mode, Program
from edl.tasks.events import PHASES, Observer
from edl.tasks.job import Plan
from edl.tasks.local import LocalTasks
from edl.tasks.outcome import Outcome
from edl.tasks.ranges import STREAMED_ROWS, partition
from edl.tasks.task import Conclusion, Course, Round, TaskSource
from edl.worker.blocks import Blocks
from edl.worker.explaining import Explainer, Explaining, draw, importances, row_values
from edl.worker.loop import Endings, Worker
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
    """Predict the pinned rows, or explain what is predicted, in their order, into `sink`."""
    began = time.monotonic()
    tasks = LocalTasks(Plan("predict", reader.rows))
    wanted = wanted_results(program)
    if not reader.rows:
        sink.stage(0, 0, [_no_rows(wanted, reader.schema)])
        return Outcome(program.spec.kind, 0, time.monotonic() - began, tasks=1)
    worker = scoring_worker(program, reader, weights, tasks, observer, cancelled)
    worker.predict(wanted, sink, Meter(observer, PHASES[program.spec.kind], reader.rows))
    return Outcome(
        program.spec.kind,
        reader.rows,
        time.monotonic() - began,
        tasks=len(partition(0, reader.rows, STREAMED_ROWS)),
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
    """Measure the model, or how much it uses each column, on the pinned rows; into `sink` as a table too."""
    if not reader.rows:
        raise JobError(f"there are no rows to {program.spec.kind}")
    tasks = LocalTasks(Plan("evaluate", reader.rows))
    worker = scoring_worker(program, reader, weights, tasks, observer, cancelled)
    worker.finish(endings(program, worker, sink), Meter(observer, PHASES[program.spec.kind], reader.rows))
    outcome = tasks.job.state.outcome
    if outcome is None:
        raise RuntimeError("an evaluation that is over has figures")
    return outcome


def wanted_results(program: Program) -> Results:
    """What a job that gives rows makes of scores."""
    return row_values(program) if program.spec.kind == "explain" else results(program)


def endings(program: Program, worker: Worker, sink: ResultSink) -> Endings:
    """What ends a job that measures."""
    kind = Explaining if program.spec.kind == "explain" else Measuring
    return kind(worker.metrics, sink)


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
        self._sink.stage(0, 0, [figures.one_row(values)])
        rows = found.measured.rows
        outcome = Outcome("evaluate", rows, course.seconds, figures=values, measured_on="all", tasks=1)
        return Conclusion(values, outcome=outcome)


def scoring_worker(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    tasks: TaskSource,
    observer: Observer,
    cancelled: threading.Event,
    draining: threading.Event | None = None,
) -> Worker:
    """A worker with the model's weights, for the kind of job that the program's is."""
    spec, blocks = program.spec, Blocks(program, reader)
    mode: Mode = "evaluate" if spec.kind == "evaluate" else "predict"
    example = blocks.read(0, min(2, reader.rows), mode)
    labels = None if mode == "predict" else example.arrays.labels
    adapter = create(program, example.arrays.features, labels, seed=spec.training.seed)
    adapter.set_weights(weights)
    scorer = Scorer(program, adapter, spec.batch_size)
    if spec.kind == "explain":
        scorer = Explainer(program, adapter, spec.batch_size, blocks, draw(spec, blocks))
    return Worker(
        blocks,
        scorer,
        Local(adapter),
        tasks,
        observer,
        _metrics(program),
        cancelled,
        draining or threading.Event(),
        measured_as=mode,
    )


def _metrics(program: Program) -> dict[str, Metric]:
    """Of a job that measures something; they are exact."""
    if program.spec.work == "predict":
        return {}
    if program.spec.kind == "explain":
        return importances(program.spec)
    return {name: _exact(metric) for name, metric in program_metrics(program).items()}


def _exact(metric: Metric) -> Metric:
    """Training rounds the AUC's scores to keep states small; a figure that is asked for is exact."""
    return AUC(exact=True) if isinstance(metric, AUC) else metric


def _no_rows(wanted: Results, schema: pa.Schema) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist([], schema=schema)
    return wanted.batch(batch, np.empty((0, wanted.scores)))
