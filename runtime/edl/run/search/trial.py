"""Trial: the training of one candidate, and the scores of the rows that it did not learn from.

archive.zip    out: the trained model
scores.npy     out: its scores of the rows after the training rows, if any, float64 (rows, 1) or (rows, classes)
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec
import numpy as np

from edl.arrays import Array
from edl.data import Reader
from edl.data.readers import PartsReader
from edl.evaluation.prediction import probabilities
from edl.evaluation.scoring import Scorer
from edl.frameworks import Adapter
from edl.input.blocks import Blocks
from edl.jobs.events import Observer
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.archive import read_archive
from edl.program import Program
from edl.run import job_runner
from edl.run.training_protocol import TrialRun
from edl.spec import JobSpec
from edl.tasks.ranges import partition
from edl.worker.trainer import train

SCORES = "scores.npy"
LEAST_SHARE = 0.1  # of its time, in which a model is trained that waited for its process
_ROWS = 65_536  # of one block


def adapt_spec(spec: JobSpec, trial: TrialRun) -> JobSpec:
    """Return the JobSpec of a candidate as the trial trains it."""
    replace = msgspec.structs.replace
    if trial.epochs:
        rows = replace(spec.rows, training=spec.rows.total, validation=0)
        training = replace(
            spec.training, epochs=trial.epochs, early_stopping=0, keep="last", validation_fraction=0.0
        )
    else:
        rows, training = trial.rows or spec.rows, spec.training
    if trial.left_out:
        short = rows.training - trial.left_out
        rows = replace(rows, training=short, total=rows.total - trial.left_out)
    # Before this, the process may have imported its framework.
    waited = max(0.0, time.time() - trial.began) if trial.began else 0.0
    limit = max(trial.time_limit - waited, trial.time_limit * LEAST_SHARE) or training.time_limit
    return replace(spec, rows=rows, training=replace(training, time_limit=limit))


def run(
    program: Program,
    job: JobFolder,
    weights: Path | None,
    *,
    left_out: int = 0,
    observer: Observer,
    cancelled: threading.Event,
) -> Outcome:
    """Train the program's model in the trial's folder. Raises JobCancelledError if `cancelled` is set.

    left_out: the training rows that the program's JobSpec no longer has.
    """
    pinned, reader = job_runner.rows_of(program, job)
    if left_out:
        reader = PartsReader.skip(reader, program.spec.rows.training, left_out)
    rows, write = job_runner.training(program, job, pinned, reader, is_trial=True)
    start = job_runner.starting_weights(program, weights)
    outcome, adapter = train(
        program,
        reader,
        rows,
        weights=start,
        observer=observer,
        cancelled=cancelled,
        export=write,
        only_loss=not program.has("callbacks"),  # the search measures the scores of all its trials in one way
    )
    if rows.training < reader.rows:
        adapter.set_weights(read_archive(job.archive).weights())
        scores, rate = _scores(program, adapter, reader, rows.training)
        np.save(job.path / SCORES, scores)
        outcome = msgspec.structs.replace(outcome, rows_per_second=rate)
    return msgspec.structs.replace(outcome, edited=program.edited)


def _scores(program: Program, adapter: Adapter, reader: Reader, first: int) -> tuple[Array, float]:
    """Return the scores of the rows from `first` to the last, and how many of them were predicted per second."""
    blocks, scorer = Blocks(program, reader), Scorer(program, adapter, program.spec.batch_size)
    # The first batch may compile the model; that is no part of the rate.
    scorer.predict(blocks.read(first, min(first + program.spec.batch_size, reader.rows), "predict"))
    began = time.monotonic()
    parts = [
        scorer.predict(blocks.read(start, end, "predict"))
        for start, end in partition(first, reader.rows, _ROWS)
    ]
    rate = (reader.rows - first) / max(time.monotonic() - began, 1e-6)
    scores = np.concatenate(parts).astype(np.float64)
    label = program.spec.label
    return probabilities(scores, label) if label.has_classes else scores, rate
