"""Importances of the columns at the end of a search, by rows that the trials did not learn from.

The model of each chosen trial is explained in a training process, by sampled Shapley values (see
`edl.evaluation.shapley`). The importances of an ensemble are the weighted mean of its members' importances.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence

from edl.data.readers import BatchReader
from edl.evaluation.scoring import trained_adapter
from edl.evaluation.shapley import Explainer, draw
from edl.input.blocks import Blocks
from edl.jobs.events import finite
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.archive import read_archive
from edl.program import Program
from edl.run import job_runner
from edl.run.background import spread_rows
from edl.spec import Importances, JobSpec, Rows, mean_importances

MOST_ROWS, LEAST_ROWS = 500, 8  # that are explained
SCORES = 30_000  # of one walk, in each direction
NUMBERS = 8_000_000  # in the rows of one walk
MOST_WALKS, BACKGROUND_ROWS = 16, 100  # from training rows


def importances(
    spec: JobSpec, weights: Mapping[int, float], explained: Mapping[int, Outcome]
) -> Importances | None:
    """Return the importances of an ensemble, or None if none of its models was explained.

    explained: by the number of the trial.
    """
    parts = [
        (weights[number], {name: value or 0.0 for name, value in outcome.figures.items()})
        for number, outcome in explained.items()
    ]
    means = mean_importances(parts)
    if not any(means.values()):
        return None
    rows = max(outcome.rows for outcome in explained.values())
    return Importances(means, rows, "test" if spec.search is not None and spec.search.test else "validation")


def run(program: Program, job: JobFolder, seconds: float, *, cancelled: threading.Event) -> Outcome:
    """Explain the model of a trial by rows that it did not learn from, as exactly as `seconds` allow.

    The figures of the outcome are the importances. Raises JobCancelledError if `cancelled` is set.
    """
    began = time.monotonic()
    spec = program.spec
    pinned, reader = job_runner.rows_of(program, job)
    rows, _ = job_runner.training(program, job, pinned, reader)
    first, last = held_out(rows, reader.rows)
    held = spread_rows(reader, first, last, rows_of_walk(len(spec.columns)), spec.columns)
    starts = spread_rows(reader, 0, rows.training, BACKGROUND_ROWS, spec.columns)
    blocks = Blocks(program, BatchReader(held))
    weights = read_archive(job.archive).weights()
    adapter = trained_adapter(program, blocks.read(0, min(2, held.num_rows), "predict"), "predict", weights)
    walks = draw(spec, blocks, starts, MOST_WALKS)
    explainer = Explainer(program, adapter, spec.batch_size, blocks, walks, cancelled)
    sizes = explainer.mean_sizes(held, until=began + seconds)
    figures = dict(zip(spec.columns, map(finite, sizes.tolist()), strict=True))
    return Outcome("explain", held.num_rows, time.monotonic() - began, figures)


def held_out(rows: Rows, total: int) -> tuple[int, int]:
    """Return the range of the test rows, or without any of the validation rows."""
    tested = rows.training + rows.validation
    return (tested, total) if tested < total else (rows.training, total)


def rows_of_walk(columns: int) -> int:
    """Return the number of rows to explain for a number of columns: a walk scores each row with each column."""
    columns = max(1, columns)
    return max(LEAST_ROWS, min(MOST_ROWS, SCORES // columns, NUMBERS // columns**2))


def seconds_of_each(seconds: float, models: Sequence[int], slots: int) -> float:
    """Return the seconds for each of several models; as many as there are slots are explained at once."""
    return seconds / max(1, math.ceil(len(models) / slots))
