"""Widths of the intervals of a trained model's predictions, from the validation rows of its training."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from edl.arrays import Array
from edl.data import Reader
from edl.evaluation.scoring import Scorer, trained_adapter
from edl.evaluation.widths import LEAST_ROWS, MOST_ROWS, fit_widths
from edl.input.blocks import Blocks
from edl.models.weights import Weights, WeightStream
from edl.program import Program
from edl.run.background import divide_range
from edl.spec import Residuals, Rows, Uncertainty


def measure_widths(
    program: Program, reader: Reader, rows: Rows, weights: Weights, measured: Uncertainty | None
) -> Uncertainty | None:
    """Return what the validation rows have measured, with the errors for intervals that differ by row if they do.

    At most MOST_ROWS of the validation rows are read and predicted once more. A program whose columns are its own, and
    weights that do not fit into memory, have intervals of one width.
    """
    own = program.edited or program.spec.zoo is not None or program.spec.forecast is not None
    if own or isinstance(weights, WeightStream) or not _can_have_widths(measured, rows.validation):
        return measured
    blocks = Blocks(program, reader)
    ranges = divide_range(rows.training, rows.training + rows.validation, MOST_ROWS)
    parts = [blocks.read(first, last, "evaluate") for first, last in ranges]
    scorer = Scorer(program, trained_adapter(program, parts[0], "evaluate", weights), program.spec.batch_size)
    weighed = [part.arrays.weights for part in parts if part.arrays.weights is not None]
    return add_widths(
        measured,
        pa.concat_batches([part.batch for part in parts]),
        program.spec.columns,
        np.concatenate([scorer.predict(part) for part in parts]),
        np.concatenate([part.arrays.labels for part in parts]),
        np.concatenate(weighed) if weighed else None,
    )


def measure_widths_of_scores(
    reader: Reader,
    first: int,
    columns: Sequence[str],
    scores: Array,
    labels: Array,
    weights: Array | None,
    measured: Uncertainty | None,
) -> Uncertainty | None:
    """Return the same for rows whose scores are known: those of the reader from `first` on."""
    if not _can_have_widths(measured, len(scores)):
        return measured
    ranges = divide_range(0, len(scores), MOST_ROWS)
    chosen = np.concatenate([np.arange(start, end) for start, end in ranges])
    batches = [
        batch for start, end in ranges for batch in reader.read(first + start, first + end, list(columns))
    ]
    rows = pa.concat_batches(batches)
    counts = None if weights is None else weights[chosen]
    return add_widths(measured, rows, columns, scores[chosen], labels[chosen], counts)


def add_widths(
    measured: Uncertainty | None,
    rows: pa.RecordBatch,
    columns: Sequence[str],
    scores: Array,
    labels: Array,
    weights: Array | None,
) -> Uncertainty | None:
    """Return the measured errors with those for intervals of different widths, if the rows have such."""
    if not isinstance(measured, Residuals) or not scores.shape == labels.shape == (len(scores), 1):
        return measured
    scaled = fit_widths(rows, columns, scores, labels, weights)
    return measured if scaled is None else msgspec.structs.replace(measured, scaled=scaled)


def _can_have_widths(measured: Uncertainty | None, rows: int) -> bool:
    return isinstance(measured, Residuals) and rows >= LEAST_ROWS
