"""PREDICT, EVALUATE and EXPLAIN in one process, with the weights of a trained model."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from edl.arrays import Array
from edl.data import Reader
from edl.data.results import ResultSink
from edl.errors import JobError
from edl.evaluation.explaining import explaining_scorer
from edl.evaluation.prediction import Results, results
from edl.evaluation.reports import MeasurementReport, finding
from edl.evaluation.scoring import Scorer, trained_adapter
from edl.evaluation.shapley import row_values
from edl.input.blocks import Blocks
from edl.jobs.events import PHASES, Observer
from edl.jobs.outcome import Outcome
from edl.program import Mode, Program
from edl.spec import JobSpec
from edl.spec.job import Kind
from edl.tasks.job_state import plan
from edl.tasks.local import LocalTasks
from edl.tasks.task import Conclusion, JobProgress, Round, TaskSource
from edl.worker.loop import Worker
from edl.worker.progress import Meter
from edl.worker.strategies.base import Local


def predict(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    sink: ResultSink,
    background: pa.RecordBatch | None = None,
    *,
    observer: Observer,
    cancelled: threading.Event,
) -> Outcome:
    """Predict or explain the pinned rows in their order and write the results to `sink`.

    background: rows to compare explained rows with, in place of the query's rows.
    """
    began = time.monotonic()
    tasks = _tasks(program.spec, reader)
    results_of_program = wanted_results(program)
    if not reader.rows:
        sink.stage(0, 0, [results_of_program.empty(reader.schema)])
        return Outcome(program.spec.kind, 0, time.monotonic() - began, tasks=1)
    worker = scoring_worker(program, reader, weights, tasks, observer, cancelled, background=background)
    worker.predict(results_of_program, sink, Meter(observer, PHASES[program.spec.kind], reader.rows))
    return Outcome(program.spec.kind, reader.rows, time.monotonic() - began, tasks=tasks.job.plan.parts)


def evaluate(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    sink: ResultSink,
    background: pa.RecordBatch | None = None,
    *,
    observer: Observer,
    cancelled: threading.Event,
) -> Outcome:
    """Measure the model, or the importance of its columns, on the pinned rows; the table goes to `sink`.

    Raises JobError if there are no rows.
    """
    if not reader.rows:
        raise JobError(f"there are no rows to {program.spec.kind}")
    tasks = _tasks(program.spec, reader)
    worker = scoring_worker(program, reader, weights, tasks, observer, cancelled, background=background)
    worker.finish(
        Measuring(program.spec.kind, finding(program), sink),
        Meter(observer, PHASES[program.spec.kind], reader.rows),
    )
    outcome = tasks.job.state.outcome
    if outcome is None:
        raise RuntimeError("an evaluation that is over has figures")
    return outcome


def wanted_results(program: Program) -> Results:
    """Return the result format of a job that predicts or explains rows."""
    return row_values(program) if program.spec.kind == "explain" else results(program)


@dataclass(frozen=True)
class Measuring:
    """Handler that concludes a job which measures; stages the result table in `sink`."""

    kind: Kind
    finding: MeasurementReport
    sink: ResultSink

    def conclude(self, round_: Round) -> Conclusion:
        raise RuntimeError("what is measured has one round, which the export ends")

    def export(self, round_: Round) -> Conclusion:
        progress, summary = round_.progress or JobProgress(), round_.measured
        values, table = self.finding.figures(summary), self.finding.table(summary)
        self.sink.stage(0, 0, [table])
        outcome = Outcome(
            self.kind,
            summary.rows,
            progress.seconds,
            figures=values,
            measured_on="all",
            tasks=1,
            made=table.num_rows,
        )
        return Conclusion(values, outcome=outcome)


def scoring_worker(
    program: Program,
    reader: Reader,
    weights: Mapping[str, Array],
    tasks: TaskSource,
    observer: Observer,
    cancelled: threading.Event,
    draining: threading.Event | None = None,
    background: pa.RecordBatch | None = None,
) -> Worker:
    """Return a worker with the model's weights for the program's kind of job."""
    spec, blocks = program.spec, Blocks(program, reader)
    mode: Mode = "evaluate" if spec.kind == "evaluate" else "predict"
    adapter = trained_adapter(program, blocks.read(0, min(2, reader.rows), mode), mode, weights)
    scorer = Scorer(program, adapter, spec.batch_size)
    if spec.kind == "explain":
        scorer = explaining_scorer(program, adapter, blocks, background, cancelled)
    return Worker(
        blocks,
        scorer,
        Local(adapter),
        tasks,
        observer,
        {} if spec.work == "predict" else finding(program).metrics,
        cancelled,
        draining or threading.Event(),
        measured_as=mode,
    )


def _tasks(spec: JobSpec, reader: Reader) -> LocalTasks:
    rows = msgspec.structs.replace(spec.rows, total=reader.rows)
    return LocalTasks(plan(spec, rows))
