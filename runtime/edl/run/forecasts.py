"""Last steps of the training of a forecast, once the backtest has chosen the number of rounds or epochs.

Its quantiles are calibrated by the backtest, and then the model is trained on all rows.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping

import msgspec
import numpy as np

from edl.arrays import Array
from edl.forecasting import ExamplesReader
from edl.frameworks import create
from edl.input.blocks import Blocks
from edl.jobs.events import ignore
from edl.jobs.outcome import Outcome
from edl.models.weights import Weights
from edl.program import Program
from edl.spec import TREES, Rows
from edl.spec.forecast import BESIDE, SCALE, SHIFTS
from edl.worker.trainer import train


def finish_training(
    program: Program,
    reader: ExamplesReader,
    outcome: Outcome,
    weights: Weights,
    cancelled: threading.Event | None = None,
) -> tuple[Outcome, Weights]:
    """Return the outcome of the training and the weights to keep."""
    if not isinstance(weights, Mapping):  # a stream, which trees do not give
        return outcome, weights
    shifts = _shifts(program, reader, weights)
    outcome, weights = _refit(program, reader, outcome, weights, cancelled)
    return outcome, {**weights, **shifts}


def _shifts(program: Program, reader: ExamplesReader, weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the shifts that calibrate the quantiles, as weights; empty without quantiles or a backtest.

    Each quantile gets its share of the backtest below it: the step of conformalized quantile regression (Romano,
    Patterson and Candès, 2019), for each side.
    """
    label = program.spec.label
    if SHIFTS not in weights or reader.training == reader.rows or not label.is_forecast:
        return {}
    block = Blocks(program, reader).read(reader.training, reader.rows, "train").arrays
    adapter = create(program, block.features, block.labels, seed=program.spec.training.seed)
    adapter.set_weights(weights)
    places = range(1, label.outputs)
    predicted = adapter.predict(block.features).astype(np.float64)
    errors = (block.labels[:, :1] - predicted) / block.labels[:, [1 + BESIDE.index(SCALE)]]
    shifts = [
        np.quantile(errors[:, place], share, method="weibull")
        for place, share in zip(places, label.quantiles, strict=True)
    ]
    return {SHIFTS: np.array(shifts, dtype=weights[SHIFTS].dtype)}


def _refit(
    program: Program,
    reader: ExamplesReader,
    outcome: Outcome,
    weights: Mapping[str, Array],
    cancelled: threading.Event | None,
) -> tuple[Outcome, Mapping[str, Array]]:
    """Return the outcome and the weights of a training on all rows; the same ones if none is wanted."""
    spec = program.spec
    rounds = outcome.kept_epoch or outcome.epochs
    if spec.forecast is None or not spec.forecast.refit or reader.refit is None or not rounds:
        return outcome, weights
    examples = reader.refit()
    training = msgspec.structs.replace(
        spec.training, epochs=rounds, early_stopping=0, keep="last", validation_fraction=0.0, max_steps=0
    )
    rows = Rows(True, examples.rows, examples.rows)
    again = dataclasses.replace(program, spec=msgspec.structs.replace(spec, training=training, rows=rows))
    _, adapter = train(again, examples, rows, observer=ignore, cancelled=cancelled or threading.Event())
    length = "rounds" if spec.framework in TREES else "epochs"
    note = f"trained again on all {examples.rows:,} examples, those of the backtest included, in {rounds:,} {length}"
    return msgspec.structs.replace(outcome, notes=(*outcome.notes, note)), adapter.get_weights()
