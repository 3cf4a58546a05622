"""EVALUATE of predictions in rows: the metrics of a model's evaluation, without a model.

Rows are read block by block; of classes a first pass finds their values. A row without a prediction (NULL or not
finite) is left out and counted; one without a label is an error, as in the evaluation of a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.data import Reader
from edl.errors import JobError, SemanticError, did_you_mean
from edl.evaluation.reports import Measured, report_of
from edl.features.arrays import integers, numbers, plain_array, texts
from edl.features.categories import Levels
from edl.features.labels import ClassTarget, refuse_unknown
from edl.features.weights import RowWeights
from edl.jobs.events import Figures
from edl.metrics import MSE, LogLoss, Metric, State, by_name
from edl.spec import ClassLabel, Label, RegressionLabel, Weights
from edl.spec.measurement import Measurement
from edl.tasks.task import Summary

BLOCK = 8192  # rows measured at once
MOST_CLASSES = 1000
ROUNDED = 0.01  # by which the probabilities of a row may differ from 1 in all

_LOSS = "edl.loss"  # name that no metric has

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Found:
    """Figures and result table.

    unpredicted: rows left out. uneven: rows with probabilities that do not add up to 1.
    overlap: False if no predicted class is the class of any row.
    """

    label: Label
    figures: Figures
    table: pa.RecordBatch
    rows: int
    unpredicted: int
    uneven: int
    overlap: bool


@dataclass(slots=True)
class _Block:
    """Predicted rows of a block.

    decided: (n, 1) predicted numbers, or (n, k) with 1 for the predicted class. scores: the same, or probabilities.
    """

    labels: npt.NDArray[np.generic]
    decided: Array
    scores: Array | None
    weights: npt.NDArray[np.float32] | None
    unpredicted: int
    uneven: int = 0


def measure(spec: Measurement, reader: Reader) -> Found:
    """Compare the predictions of all rows with their labels.

    Raises JobError if no row has a prediction, and SemanticError for a label that is NULL, a class that cannot be, or a
    probability that is none.
    """
    if not reader.rows:
        raise JobError("there are no rows to evaluate")
    overlap = True
    if spec.kind == "regression":
        label: Label = RegressionLabel(spec.label, 0.0, 1.0)
        blocks = _number_blocks(spec, reader)
        loss: Metric | None = MSE()
    else:
        classes, overlap = (spec.classes, True) if spec.classes else find_classes(spec, reader)
        label = ClassLabel(spec.label, classes)
        if len(spec.probabilities) == 1 and not label.is_binary:
            raise _several_classes_error(spec, label)
        blocks = _class_blocks(spec, label, reader)
        loss = LogLoss() if spec.probabilities else None
    metrics = {name: by_name(name, None) for name in spec.metrics}
    report = report_of(spec.report, metrics, Measured(label, spec.threshold, bool(spec.weight)))
    summary, unpredicted, uneven = _summary(blocks, report.metrics, loss)
    if not summary.rows:
        raise _no_prediction()
    table = report.table(summary)
    return Found(label, report.figures(summary), table, summary.rows, unpredicted, uneven, overlap)


def _summary(
    blocks: Iterator[_Block], metrics: Mapping[str, Metric], loss: Metric | None
) -> tuple[Summary, int, int]:
    """Return the states of the metrics over all blocks, and the numbers of rows left out and uneven."""
    measured = dict(metrics) | ({_LOSS: loss} if loss else {})
    states: dict[str, State] = {name: metric.zero() for name, metric in measured.items()}
    rows = unpredicted = uneven = 0
    for block in blocks:
        rows += len(block.labels)
        unpredicted += block.unpredicted
        uneven += block.uneven
        for name, metric in measured.items():
            scores = block.decided if block.scores is None or metric.of_decision else block.scores
            states[name] = metric.update(states[name], block.labels, scores, block.weights)
    loss_state = states.pop(_LOSS, None)
    mean = loss.result(loss_state) if loss and loss_state else float("nan")
    return Summary(rows, loss=mean, weight=1.0, states=[states]), unpredicted, uneven


def _no_prediction() -> JobError:
    return JobError("there is no prediction in any of the rows")


def _batches(spec: Measurement, reader: Reader) -> Iterator[pa.RecordBatch]:
    for batch in reader.read(0, reader.rows, spec.columns):
        yield from (batch.slice(start, BLOCK) for start in range(0, batch.num_rows, BLOCK))


def _weights(spec: Measurement, batch: pa.RecordBatch) -> npt.NDArray[np.float32] | None:
    return RowWeights(Weights(spec.weight)).transform(batch, "evaluate") if spec.weight else None


# Numbers -----------------------------------------------------------------------------------------------------


def _number_blocks(spec: Measurement, reader: Reader) -> Iterator[_Block]:
    for batch in _batches(spec, reader):
        array = plain_array(batch.column(spec.label))
        refuse_unknown(spec.label, array)
        labels = numbers(array, spec.label)[:, np.newaxis]
        predicted = numbers(batch.column(spec.prediction), spec.prediction)[:, np.newaxis]
        yield _of_some(np.isfinite(predicted[:, 0]), labels, predicted, None, _weights(spec, batch))


def _of_some(
    some: npt.NDArray[np.bool_],
    labels: npt.NDArray[np.generic],
    decided: Array,
    scores: Array | None,
    weights: npt.NDArray[np.float32] | None,
) -> _Block:
    """Return the block of some of the rows."""
    missing = int((~some).sum())
    if missing:
        labels, decided = labels[some], decided[some]
        scores = None if scores is None else scores[some]
        weights = None if weights is None else weights[some]
    return _Block(labels, decided, scores, weights, missing)


# Classes -----------------------------------------------------------------------------------------------------


def _class_blocks(spec: Measurement, label: ClassLabel, reader: Reader) -> Iterator[_Block]:
    target, levels = ClassTarget(label), Levels(spec.prediction, label.classes)
    size = len(label.classes)
    for batch in _batches(spec, reader):
        labels = target.transform(batch, "evaluate")
        assert labels is not None  # noqa: S101 - of an evaluation
        some = np.ones(len(labels), np.bool_)
        scores, decided = None, np.empty(0)
        if spec.probabilities:
            scores = _probabilities(spec, batch)
            some &= np.isfinite(scores).all(axis=1)
            decided = scores
        if spec.prediction:
            array = plain_array(batch.column(spec.prediction))
            positions = _positions(array, levels, label)
            some &= positions >= 0
            decided = (positions[:, np.newaxis] == np.arange(size)).astype(np.float64)
        block = _of_some(some, labels, decided, scores, _weights(spec, batch))
        if block.scores is not None:
            block.uneven = int((np.abs(block.scores.sum(axis=1) - 1) > ROUNDED).sum())
        yield block


def _several_classes_error(spec: Measurement, label: ClassLabel) -> SemanticError:
    """Return the error for the probability of one of more than two classes."""
    some = ", ".join(f"{str(value)!r}: p_{value}" for value in label.classes[:3])
    return SemanticError(
        f"{spec.label} has {len(label.classes)} classes, and {spec.probabilities[0]} is the probability of one",
        hint=f"name a column for each class: evaluate.probability = {{{some}{', …' * (len(label.classes) > 3)}}}",
    )


def _positions(array: pa.Array, levels: Levels, label: ClassLabel) -> npt.NDArray[np.int64]:
    """Return the positions of the predicted classes, -1 for none. Raises SemanticError for another value."""
    positions = levels.positions(array)
    unknown = pc.and_(positions.is_null(), _is_known(array))
    if pc.any(unknown).as_py():
        value = str(array.filter(unknown)[0].as_py())
        raise SemanticError(
            f"{levels.column} is none of the {len(label.classes)} classes "
            f"in {pc.sum(unknown).as_py():,} of {len(array):,} rows, such as {value!r}",
            hint=did_you_mean(value, [str(class_) for class_ in label.classes]),
        )
    return np.asarray(positions.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def _is_known(array: pa.Array) -> pa.Array:
    return array.is_valid() if not types.is_floating(array.type) else pc.is_finite(array).fill_null(False)


def _probabilities(spec: Measurement, batch: pa.RecordBatch) -> Array:
    """Return the probabilities of the classes, (n, k), NaN for NULL. Raises SemanticError for other numbers."""
    columns = [numbers(batch.column(name), name) for name in spec.probabilities]
    for name, values in zip(spec.probabilities, columns, strict=True):
        wrong = (values < 0) | (values > 1)
        if wrong.any():
            raise SemanticError(
                f"{name} is not a probability in {int(wrong.sum()):,} of {len(values):,} rows, such as "
                f"{values[wrong][0]:g}",
                hint="a probability is from 0 to 1; of a logit x it is 1 / (1 + exp(-x))",
            )
    if len(columns) == 1:
        columns = [1 - columns[0], columns[0]]
    return np.stack(columns, axis=1)


def find_classes(spec: Measurement, reader: Reader) -> tuple[tuple[str | bool | int, ...], bool]:
    """Return the classes that occur as labels or predictions, in their natural order, and if some occur as both."""
    kind = plain_array(pa.nulls(0, reader.schema.field(spec.label).type)).type
    if types.is_boolean(kind):
        return (False, True), True
    whole = types.is_integer(kind)
    columns = [name for name in (spec.label, spec.prediction) if name]
    of_column: dict[str, set[str | int]] = {name: set() for name in columns}
    for batch in reader.read(0, reader.rows, columns):
        for name in columns:
            of_column[name] |= _values(plain_array(batch.column(name)), name, whole=whole)
        all_classes = set[str | int]().union(*of_column.values())
        if len(all_classes) > MOST_CLASSES:
            raise SemanticError(
                f"{spec.label} has more than {MOST_CLASSES:,} different values, too many for classes",
                hint="measure numbers: WITH evaluate.kind = regression" if whole else None,
            )
    if not all_classes or (spec.prediction and not of_column[spec.prediction]):
        raise _no_prediction()
    if all_classes <= {0, 1}:
        return (0, 1), True
    if len(all_classes) < 2:
        raise SemanticError(
            f"there is a single class, {next(iter(all_classes))}, in {' and '.join(columns)}: nothing to compare",
            hint="name the classes: evaluate.probability = {'no': p_no, 'yes': p_yes}"
            if spec.probabilities
            else None,
        )
    return tuple(sorted(all_classes)), bool(set.intersection(*of_column.values()))


def _values(array: pa.Array, column: str, *, whole: bool) -> set[str | int]:
    """Return the distinct whole numbers or texts of the column."""
    if whole:
        values, valid = integers(array, column)
        return set(np.unique(values[valid]).tolist())
    distinct = pc.unique(texts(array, column)).drop_null().to_pylist()
    return {value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in distinct}
