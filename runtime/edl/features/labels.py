"""Labels: the column to predict as a training array, and a model's outputs as values of that column.

A target is the transform of one label, as `Features` is the transform of the features. Its four arrays, for n rows:

    labels   (n, 1) float32 for a number and for two classes, (n,) int64 positions for more classes,
             (n, 2) int64 relevance and number of the group for a ranking, (n,) int64 zeros for clusters,
             (n,) int64 zeros for a reduction, (n, 1) float32 zeros for anomalies,
             (n, outputs) float32 for several of them, classes as a 1 among zeros,
             (n, 5) float32 for a forecast: the number, its seasonal naive forecast, the mean error of such forecasts,
             the scale of the series, and the forecast of AutoETS
    outputs  (n, 1) output of the model: the number less its centre, or the logit of the second class or of an anomaly;
             (n, k) logits of k classes, or squared distances to the centres of k clusters,
             (n, k + 3) numbers and errors of a reduction
    scores   (n, 1) float64 numbers or scores of a ranking or of anomalies, (n, 2) or (n, k) float64 probabilities,
             (n, k) distances, (n, k + 3) float64 outputs of a reduction
    values   predictions for the user, an Arrow array

Models learn float32 labels. In evaluation numbers are float64, the values in the table themselves, with which metrics
compare the scores; `learned` makes of them what the model learns, for the loss.

In training and evaluation a label must be known: a NULL (or NaN, or an infinity) and a class that the model does not
have are SemanticErrors; in prediction the label is not read at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET, UnsetType

from edl.errors import JobError, SemanticError, SpecError, did_you_mean
from edl.features.arrays import Floats, numbers, plain_array, texts
from edl.features.categories import Levels
from edl.features.hashing import hash_texts
from edl.spec import (
    ANOMALOUS,
    AnomalyLabel,
    ClassLabel,
    ClusterLabel,
    ForecastLabel,
    Label,
    RankingLabel,
    RawLabel,
    ReductionLabel,
    RegressionLabel,
    SeveralLabels,
    label_offset,
)
from edl.spec.forecast import AUTO_ETS, BESIDE, NAIVE

Mode = Literal["train", "evaluate", "predict"]
_FORECASTS = (NAIVE, AUTO_ETS)  # labels beside the value, in its unit
_MANY = 8  # classes, of which NumPy adds rows up in another order than columns

Numbers = npt.NDArray[np.float32] | Floats
Labels = Numbers | npt.NDArray[np.int64]
Outputs = npt.NDArray[Any]  # float32 of a model, or float64
MOST_RELEVANCE = 30  # as in LightGBM: a gain is 2^relevance - 1
_LARGEST_GROUP = 2**53  # numbers of groups are exact as float64


class RegressionTarget:
    """Number to predict.

    `mean` and `std` are of the training rows; a built-in model ends with `outputs * std + mean`. Labels in training are
    less the `centre` of the JobSpec's label; `scores` adds it again.
    """

    def __init__(self, spec: RegressionLabel) -> None:
        _check_name(spec.column)
        _check_scale(spec)
        self.spec = spec
        self.mean = spec.mean
        self.std = spec.std

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> Numbers | None:
        """Return what the model learns, float32 (n, 1), in evaluation the numbers, float64, or None in prediction."""
        if mode == "predict":
            return None
        column = self.spec.column
        array = _column(batch, column)
        values = numbers(array, column)[:, np.newaxis]
        refuse_unknown(column, array)
        labels = self.encode_numbers(values)
        if np.isinf(labels).any():
            raise SemanticError(
                f"label {column} holds {values[np.isinf(labels)][0]:g}, beyond the range of float32",
                hint="scale it in the query, to thousands or millions for instance",
            )
        return values if mode == "evaluate" else labels

    def encode_numbers(self, values: Floats) -> npt.NDArray[np.float32]:
        """Return numbers as the model learns them: less the centre, float32."""
        with np.errstate(over="ignore"):
            return _shift_values(values, -label_offset(self.spec)).astype(np.float32)

    def scores(self, outputs: Outputs) -> Floats:
        """Return the numbers themselves, or the mean of an ensemble's members, float64 of shape (n, 1)."""
        _check_outputs(outputs, self.spec)
        numbers = outputs.astype(np.float64)
        return _shift_values(numbers.mean(axis=1) if numbers.ndim == 3 else numbers, label_offset(self.spec))

    def decode(self, scores: Floats) -> pa.Array:
        """Return the predicted numbers as float64; NULL for NaN and infinities."""
        values = scores[:, 0].astype(np.float64)
        return pa.array(values, mask=~np.isfinite(values))


class ClassTarget:
    """Class to predict, one of several."""

    def __init__(self, spec: ClassLabel) -> None:
        _check_name(spec.column)
        _check_classes(spec)
        self.spec = spec
        self._levels = Levels(spec.column, spec.classes)
        self._classes = pa.array(spec.classes)

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> Labels | None:
        """Return float32 0 or 1 of shape (n, 1) for two classes, int64 of shape (n,) for more; None to predict."""
        if mode == "predict":
            return None
        array = plain_array(_column(batch, self.spec.column))
        refuse_unknown(self.spec.column, array)
        positions = self._levels.positions(array)
        if positions.null_count:
            raise self._unknown_class(array.filter(positions.is_null()))
        if self.spec.is_binary:
            return np.asarray(positions.to_numpy(), dtype=np.float32)[:, np.newaxis]
        return np.asarray(positions.to_numpy(), dtype=np.int64)

    def scores(self, outputs: Outputs) -> Floats:
        """Return the classes' probabilities, float64 of shape (n, number of classes); rows sum to 1.

        An ensemble's probabilities are the mean of its members'.
        """
        _check_outputs(outputs, self.spec)
        if outputs.ndim == 3:
            rows, members, _ = outputs.shape
            by_member = probabilities(outputs.reshape(rows * members, -1))
            mean: Floats = by_member.reshape(rows, members, -1).mean(axis=1)
            return mean
        return probabilities(outputs)

    def decode(self, scores: Floats) -> pa.Array:
        """Return the most probable classes (the first of equals), in their own type; NULL for non-finite scores."""
        best = pa.array(scores.argmax(axis=1), mask=~np.isfinite(scores).all(axis=1))
        return self._classes.take(best)

    def _unknown_class(self, unknown: pa.Array) -> SemanticError:
        value = texts(unknown.slice(0, 1), self.spec.column)[0].as_py()
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        return SemanticError(
            f"label {self.spec.column} is none of its {len(self.spec.classes)} classes in some rows, such as {value!r}",
            hint=did_you_mean(str(value), [str(class_) for class_ in self.spec.classes]),
        )


class RankingTarget:
    """Relevance. The rows of each group are ordered by it."""

    def __init__(self, spec: RankingLabel) -> None:
        _check_name(spec.column)
        _check_name(spec.group)
        self.spec = spec

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> npt.NDArray[np.int64] | None:
        """Return relevance and number of the group, int64 of shape (n, 2), or None in prediction."""
        if mode == "predict":
            return None
        column = self.spec.column
        array = _column(batch, column)
        relevance = numbers(array, column)
        refuse_unknown(column, array)
        wrong = (relevance % 1 != 0) | (relevance < 0) | (relevance > MOST_RELEVANCE)
        if wrong.any():
            raise SemanticError(
                f"label {column} is {relevance[wrong][0]:g}, and a relevance is a whole number from 0 to "
                f"{MOST_RELEVANCE}",
                hint="0 is irrelevant; a relevance r gains 2^r - 1",
            )
        return np.column_stack([relevance.astype(np.int64), self._groups(batch)])

    def _groups(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Return a number for each group: the value of a whole number, else a hash of its text."""
        column = self.spec.group
        array = plain_array(_column(batch, column, "the group"))
        if array.null_count:
            raise SemanticError(
                f"the group {column} is NULL in some rows",
                hint=f"leave those rows out of the query: WHERE {_sql_name(column)} IS NOT NULL",
            )
        hashed = (hash_texts(texts(array, column)) >> np.uint64(11)).astype(np.int64)
        if not pa.types.is_signed_integer(array.type):
            return hashed
        values = np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.int64)
        return np.where(np.abs(values) < _LARGEST_GROUP, values, hashed)

    def scores(self, outputs: Outputs) -> Floats:
        """Return the scores, float64 of shape (n, 1); only their order within a group has a meaning."""
        _check_outputs(outputs, self.spec)
        values: Floats = outputs.astype(np.float64)
        return values

    def decode(self, scores: Floats) -> pa.Array:
        """Return the scores as float64; NULL for NaN and infinities."""
        values = scores[:, 0].astype(np.float64)
        return pa.array(values, mask=~np.isfinite(values))


class ClusterTarget:
    """Cluster of a row, by its distance to the centres."""

    def __init__(self, spec: ClusterLabel) -> None:
        _check_name(spec.column)
        if spec.clusters < 2:
            raise SemanticError(f"there are at least two clusters, not {spec.clusters}")
        self.spec = spec

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> npt.NDArray[np.int64] | None:
        """Return int64 zeros of shape (n,), since rows have no labels, or None in prediction."""
        return None if mode == "predict" else np.zeros(batch.num_rows, dtype=np.int64)

    def scores(self, outputs: Outputs) -> Floats:
        """Return the distances to the centres, float64 of shape (n, clusters)."""
        _check_outputs(outputs, self.spec)
        distances: Floats = np.sqrt(np.maximum(outputs.astype(np.float64), 0))
        return distances

    def decode(self, scores: Floats) -> pa.Array:
        """Return the clusters with the nearest centre (the first of equals) as int64; NULL for non-finite scores."""
        return pa.array(scores.argmin(axis=1), mask=~np.isfinite(scores).all(axis=1))


class ReductionTarget:
    """Numbers in place of the features of a row, with the errors of what they restore."""

    def __init__(self, spec: ReductionLabel) -> None:
        _check_name(spec.column)
        if spec.dimensions < 1:
            raise SemanticError(f"a reduction has at least one number, not {spec.dimensions}")
        self.spec = spec

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> npt.NDArray[np.int64] | None:
        """Return int64 zeros of shape (n,), since rows have no labels, or None in prediction."""
        return None if mode == "predict" else np.zeros(batch.num_rows, dtype=np.int64)

    def scores(self, outputs: Outputs) -> Floats:
        """Return the outputs, float64 of shape (n, dimensions + 3)."""
        _check_outputs(outputs, self.spec)
        return outputs.astype(np.float64)

    def decode(self, scores: Floats) -> pa.Array:
        """Return the first number of each row as float64; NULL for NaN and infinities."""
        return pa.array(scores[:, 0], mask=~np.isfinite(scores[:, 0]))


class AnomalyTarget:
    """Anomaly score of a row without a label."""

    def __init__(self, spec: AnomalyLabel) -> None:
        _check_name(spec.column)
        self.spec = spec

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> npt.NDArray[np.float32] | None:
        """Return float32 zeros of shape (n, 1), since rows have no labels, or None in prediction."""
        return None if mode == "predict" else np.zeros((batch.num_rows, 1), dtype=np.float32)

    def scores(self, outputs: Outputs) -> Floats:
        """Return scores from 0 to 1, above 0.5 for an anomaly, float64 of shape (n, 1)."""
        _check_outputs(outputs, self.spec)
        return probabilities(outputs)[:, 1:]

    def decode(self, scores: Floats) -> pa.Array:
        """Return the anomalies as booleans; NULL for non-finite scores."""
        return pa.array(scores[:, 0] > ANOMALOUS, mask=~np.isfinite(scores[:, 0]))


class ForecastTarget:
    """Value of a time series, beside its seasonal naive forecast and the mean error of such forecasts."""

    def __init__(self, spec: ForecastLabel) -> None:
        _check_name(spec.column)
        _check_centre(spec)
        self.spec = spec

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> Numbers | None:
        """Return labels as float32 of shape (n, 5), float64 in evaluation, or None in prediction."""
        if mode == "predict":
            return None
        columns = (self.spec.column, *BESIDE)
        arrays = [_column(batch, column) for column in columns]
        refuse_unknown(self.spec.column, arrays[0])
        values = [numbers(array, column) for array, column in zip(arrays, columns, strict=True)]
        labels = np.stack(values, axis=1)
        return labels if mode == "evaluate" else self.encode_numbers(labels)

    def encode_numbers(self, values: Floats) -> npt.NDArray[np.float32]:
        """Return labels of shape (n, 5) as the model learns them: values and forecasts less the centre, float32."""
        offset = label_offset(self.spec)
        of_values = np.array([offset * (name in _FORECASTS) for name in BESIDE])
        return (values - np.r_[offset, of_values]).astype(np.float32) if offset else values.astype(np.float32)

    def scores(self, outputs: Outputs) -> Floats:
        """Return the forecasts and their quantiles, float64 of shape (n, 1 + quantiles).

        Quantiles rise in each row, and those below and above a half lie on that side of the forecast.
        """
        _check_outputs(outputs, self.spec)
        values: Floats = outputs.astype(np.float64)
        values[:, 1:].sort(axis=1)
        for place, quantile in enumerate(self.spec.quantiles, 1):
            limit = np.minimum if quantile < 0.5 else np.maximum
            values[:, place] = limit(values[:, place], values[:, 0])
        return _shift_values(values, label_offset(self.spec))

    def decode(self, scores: Floats) -> pa.Array:
        """Return the forecasts as float64; NULL for NaN and infinities."""
        values = scores[:, 0].astype(np.float64)
        return pa.array(values, mask=~np.isfinite(values))


class SeveralTarget:
    """Several numbers and classes, side by side."""

    def __init__(self, spec: SeveralLabels) -> None:
        if len(spec.labels) < 2:
            raise SemanticError("several labels are two or more")
        self.spec = spec
        self.targets: list[RegressionTarget | ClassTarget] = [
            TARGETS[type(one_label)](one_label)  # type: ignore[misc]  # of a number or of classes
            for one_label in spec.labels
        ]

    def __getitem__(self, number: int) -> RegressionTarget | ClassTarget:
        """Return the target of one label, counted from 0."""
        return self.targets[number]

    @property
    def mean(self) -> list[float]:
        """Mean of each output; 0 for classes."""
        return self._by_output("mean", 0.0)

    @property
    def std(self) -> list[float]:
        """Standard deviation of each output; 1 for classes."""
        return self._by_output("std", 1.0)

    def _by_output(self, name: str, otherwise: float) -> list[float]:
        return [
            getattr(one_label, name, otherwise)
            for one_label in self.spec.labels
            for _ in range(one_label.outputs)
        ]

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> Numbers | None:
        """Return labels as float32 of shape (n, outputs), float64 in evaluation, or None in prediction."""
        if mode == "predict":
            return None
        return np.concatenate(
            [self._side_by_side(one_target, batch, mode) for one_target in self.targets], axis=1
        )

    @staticmethod
    def _side_by_side(target: RegressionTarget | ClassTarget, batch: pa.RecordBatch, mode: Mode) -> Labels:
        labels = target.transform(batch, mode)
        if labels is None:
            raise RuntimeError("rows to train or measure have labels")
        return labels if labels.ndim == 2 else np.eye(target.spec.outputs, dtype=np.float32)[labels]

    def encode_numbers(self, values: Floats) -> npt.NDArray[np.float32]:
        """Return labels of shape (n, outputs) as the model learns them: numbers less their centres, float32."""
        offsets = [
            label_offset(one_label) for one_label in self.spec.labels for _ in range(one_label.outputs)
        ]
        differences: Floats = values - np.array(offsets)
        return differences.astype(np.float32)

    def scores(self, outputs: Outputs) -> Floats:
        """Return the scores of each label, side by side, float64."""
        _check_outputs(outputs, self.spec)
        parts = zip(self.targets, self.spec.places, strict=True)
        return np.concatenate(
            [one_target.scores(outputs[..., first:last]) for one_target, (first, last) in parts], axis=1
        )


class RawTarget:
    """Undeclared outputs; the labels are those returned by `feed` of the module."""

    def __init__(self, spec: RawLabel) -> None:
        self.spec = spec

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> None:
        """Return None: there is no label column to read."""

    def scores(self, outputs: Outputs) -> Floats:
        return outputs.astype(np.float64)

    def decode(self, scores: Floats) -> pa.Array:
        """Return a number per row, or a list of them; NULL for NaN and infinities."""
        width = math.prod(scores.shape[1:])
        values = scores.ravel().astype(np.float64)
        numbers = pa.array(values, mask=~np.isfinite(values))
        return numbers if width == 1 else pa.FixedSizeListArray.from_arrays(numbers, width)


Target = (
    RegressionTarget
    | ClassTarget
    | RankingTarget
    | ClusterTarget
    | AnomalyTarget
    | ReductionTarget
    | ForecastTarget
    | RawTarget
    | SeveralTarget
)


TARGETS: Mapping[type, Callable[[Any], Target]] = {
    RegressionLabel: RegressionTarget,
    ClassLabel: ClassTarget,
    RankingLabel: RankingTarget,
    ClusterLabel: ClusterTarget,
    ReductionLabel: ReductionTarget,
    AnomalyLabel: AnomalyTarget,
    ForecastLabel: ForecastTarget,
    RawLabel: RawTarget,
    SeveralLabels: SeveralTarget,
}


def label(
    column: str, mean: float = 0.0, std: float = 1.0, centre: float | UnsetType = UNSET
) -> RegressionTarget:
    """Return the target that predicts the number in `column`; `mean` and `std` are of the training rows.

    With a `centre` the model learns the number less it, and `mean` is of the differences.
    """
    return RegressionTarget(RegressionLabel(column, mean, std, centre))


def class_label(column: str, classes: Iterable[str | bool | int]) -> ClassTarget:
    """Return the target that predicts one of `classes`: at least two, all text, all integers or all booleans."""
    return ClassTarget(ClassLabel(column, tuple(classes)))


def ranking(column: str, group: str) -> RankingTarget:
    """Return the target that orders the rows of each value of `group` by the relevance in `column`."""
    return RankingTarget(RankingLabel(column, group))


def clusters(number: int) -> ClusterTarget:
    """Return the target that assigns each row to one of `number` clusters."""
    return ClusterTarget(ClusterLabel(number))


def reduction(dimensions: int, column: str) -> ReductionTarget:
    """Return the target that stands for each row in so many numbers, in the columns `column_1`, `column_2`, …."""
    return ReductionTarget(ReductionLabel(dimensions, column))


def anomalies() -> AnomalyTarget:
    """Return the target that tells unusual rows."""
    return AnomalyTarget(AnomalyLabel())


def forecast(
    column: str, quantiles: Iterable[float] = (), centre: float | UnsetType = UNSET
) -> ForecastTarget:
    """Return the target that predicts the number in `column` at a later time of its series, and its quantiles.

    With a `centre` the model learns the numbers less it.
    """
    return ForecastTarget(ForecastLabel(column, tuple(quantiles), centre))


def labels(*parts: RegressionTarget | ClassTarget) -> SeveralTarget:
    """Return the target that predicts several numbers and classes, made by `label` and `class_label`."""
    return SeveralTarget(SeveralLabels(tuple(part.spec for part in parts)))


def target(spec: Label) -> Target:
    """Return the target of a JobSpec's label."""
    if (kind := TARGETS.get(type(spec))) is None:
        raise SpecError("a transform has no label")
    return kind(spec)


def learned_labels(target_of_model: Target, labels: Labels) -> Labels:
    """Return labels of an evaluation as the model learns them: float64 numbers as float32, less their centre."""
    if labels.dtype != np.float64:
        return labels
    if isinstance(target_of_model, RegressionTarget | ForecastTarget | SeveralTarget):
        return target_of_model.encode_numbers(labels.astype(np.float64, copy=False))
    return labels.astype(np.float32)


def probabilities(logits: Outputs) -> Floats:
    """Return float64 probabilities of classes: (n, k) of (n, k) logits, or (n, 2) of (n, 1) logits."""
    wide = logits.astype(np.float64)
    if wide.shape[1] == 1:
        wide = np.concatenate([np.zeros_like(wide), wide], axis=1)
    few = wide.shape[1] < _MANY
    by_class = np.ascontiguousarray(wide.T) if few else wide.T  # NumPy is slow to reduce short rows
    with np.errstate(invalid="ignore"):  # infinities of a diverged model; its scores are NaN
        powers = np.exp(by_class - by_class.max(axis=0))
        shares: Floats = (powers / powers.sum(axis=0)).T
    return np.ascontiguousarray(shares)


# Checks ----------------------------------------------------------------------------------------------------


def _check_name(column: object) -> None:
    if not isinstance(column, str) or not column:
        raise SemanticError(f"a label needs the name of a column, not {column!r}")


def _shift_values(values: Floats, offset: float) -> Floats:
    return values + offset if offset else values


def _check_scale(spec: RegressionLabel) -> None:
    _check_centre(spec)
    if not (math.isfinite(spec.mean) and math.isfinite(spec.std) and spec.std > 0):
        raise SemanticError(
            f"label {spec.column} has mean {spec.mean} and std {spec.std}; both must be finite, std positive"
        )


def _check_centre(spec: RegressionLabel | ForecastLabel) -> None:
    if not math.isfinite(label_offset(spec)):
        raise SemanticError(f"label {spec.column} has the centre {spec.centre}, which must be finite")


def _check_classes(spec: ClassLabel) -> None:
    if len(spec.classes) < 2:
        raise SemanticError(f"label {spec.column} needs at least two classes, it has {len(spec.classes)}")
    if {type(value) for value in spec.classes} not in ({str}, {bool}, {int}):
        raise SemanticError(
            f"the classes of label {spec.column} must be all text, all integers or all booleans"
        )
    if len(set(spec.classes)) < len(spec.classes):
        raise SemanticError(f"the classes of label {spec.column} hold a value twice")


def _column(batch: pa.RecordBatch, column: str, what: str = "the label") -> pa.Array:
    names = batch.schema.names
    if names.count(column) != 1:
        how_many = "several columns" if column in names else "no column"
        raise SemanticError(f"the data has {how_many} {column}, {what}", hint=did_you_mean(column, names))
    return batch.column(column)


def _sql_name(column: str) -> str:
    """Return the column as SQL names it; the quotes depend on the database."""
    return column if column.isidentifier() else "…"


def refuse_unknown(column: str, array: pa.Array) -> None:
    """Raise SemanticError if a label of the batch is NULL or not finite."""
    for count, what, hint in (
        (
            array.null_count,
            "NULL",
            f"leave those rows out of the query: WHERE {_sql_name(column)} IS NOT NULL",
        ),
        (_not_finite(array), "not a finite number", "leave those rows out of the query"),
    ):
        if count:
            raise SemanticError(f"label {column} is {what} in some rows", hint=hint)


def _not_finite(array: pa.Array) -> int:
    if not pa.types.is_floating(array.type):
        return 0
    return int(np.count_nonzero(~np.isfinite(numbers(array, ""))))


def _check_outputs(outputs: Outputs, spec: Label) -> None:
    if outputs.ndim not in (2, 3) or outputs.shape[-1] != spec.outputs:
        raise JobError(
            f"the model's outputs have the shape {outputs.shape} where label {spec.column} "
            f"needs (rows, {spec.outputs})"
        )
