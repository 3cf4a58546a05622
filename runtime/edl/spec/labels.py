"""Labels as data: what a model predicts, and the form of its labels and outputs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import msgspec

from edl.spec.forecast import BESIDE


class RegressionLabel(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="regression", tag_field="op"
):
    """Number to predict. Labels are float32 of shape (n, 1), those to measure float64; the model has one output.

    `mean` and `std` are of the training rows. A built-in model ends with `outputs * std + mean` and measures its loss
    in units of std, so that a learning rate means the same for an income as for a ratio.

    With a `centre` the model learns the number less it, which float32 holds more exactly than the number itself, as of
    seconds since 1970. `mean` is then the mean of the differences, and the centre is added to the outputs in float64.
    """

    column: str
    mean: float = 0.0
    std: float = 1.0
    centre: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def outputs(self) -> int:
        return 1


class ClassLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="class", tag_field="op"):
    """Class to predict, one of `classes` in their natural order: all text, all integers or all booleans.

    With two classes, labels are float32 of shape (n, 1), and there is one logit, for `classes[1]`. With more, labels
    are int64 of shape (n,), with a logit for each class.
    """

    column: str
    classes: tuple[str | bool | int, ...]

    @property
    def is_binary(self) -> bool:
        return len(self.classes) == 2

    @property
    def outputs(self) -> int:
        return 1 if self.is_binary else len(self.classes)


class RankingLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ranking", tag_field="op"):
    """Relevance of a row, by which a model orders the rows of each group: whole numbers from 0, higher is better.

    The rows of a group have the same value of the column `group`. Labels are int64 of shape (n, 2), the relevance and a
    number of the group; the model has one output, the score.
    """

    column: str
    group: str

    @property
    def outputs(self) -> int:
        return 1


class ClusterLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="cluster", tag_field="op"):
    """Cluster of a row, which a model finds without labels: a whole number from 0 below `clusters`.

    No column of the training rows is read for it; `column` names the predicted one. Labels are int64 zeros of shape
    (n,); the model has an output for each cluster, the squared distance to its centre.
    """

    clusters: int
    column: str = "cluster"

    @property
    def outputs(self) -> int:
        return self.clusters


ANOMALOUS = 0.5  # score above which a row is an anomaly


class AnomalyLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="anomaly", tag_field="op"):
    """True for an unusual row, which a model finds without labels.

    No column of the training rows is read for it; `column` names the predicted one. Labels are float32 zeros of shape
    (n, 1); the model has one output, the log-odds of an anomaly.
    """

    column: str = "anomaly"

    @property
    def outputs(self) -> int:
        return 1


class ForecastLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="forecast", tag_field="op"):
    """Value of a time series at a later time.

    Labels are float32 of shape (n, 5): the value, its seasonal naive forecast, the mean absolute error of such
    forecasts in the series until then, the scale of the series, and the forecast of AutoETS, NaN outside of a backtest.
    The outputs of the model are the forecast and its `quantiles`, in rising order. With a `centre` the model learns
    values, forecasts and levels less it, see `RegressionLabel`.
    """

    column: str
    quantiles: tuple[float, ...] = ()
    centre: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def outputs(self) -> int:
        return 1 + len(self.quantiles)


class RawLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="raw", tag_field="op"):
    """Label of a hand-written module that does not declare what it predicts: the model's outputs are unchanged."""

    column: str

    @property
    def outputs(self) -> int:
        """Zero: the number is unknown before the model exists."""
        return 0


class NoLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="none", tag_field="op"):
    """Label of a transform, which predicts nothing."""

    column: str = ""

    @property
    def outputs(self) -> int:
        return 0


class SeveralLabels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="several", tag_field="op"):
    """Several numbers and classes that one model predicts.

    Labels are float32 of shape (n, outputs), side by side in the order of `labels`: a number, 0 or 1 of two classes, a
    1 among as many numbers as there are more classes. The outputs of the model have the same places.
    """

    labels: tuple[RegressionLabel | ClassLabel, ...]

    @property
    def column(self) -> str:
        """Names of the columns for a reader."""
        return ", ".join(label.column for label in self.labels)

    @property
    def outputs(self) -> int:
        return sum(label.outputs for label in self.labels)

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """First output of each label, and the first one behind it."""
        return _side_by_side(label.outputs for label in self.labels)

    @property
    def score_places(self) -> tuple[tuple[int, int], ...]:
        """Places of each label among the scores, of which a class has one each."""
        return _side_by_side(
            len(label.classes) if isinstance(label, ClassLabel) else 1 for label in self.labels
        )


def _side_by_side(widths: Iterable[int]) -> tuple[tuple[int, int], ...]:
    ends = tuple(accumulate(widths))
    return tuple(zip((0, *ends), ends, strict=False))


Unlabelled = ClusterLabel | AnomalyLabel  # found without a label
Label = (
    RegressionLabel
    | ClassLabel
    | RankingLabel
    | Unlabelled
    | ForecastLabel
    | RawLabel
    | NoLabel
    | SeveralLabels
)


def each_label(label: Label) -> tuple[Label, ...]:
    """Return the labels of a model, one or several; none of a transform."""
    if isinstance(label, NoLabel):
        return ()
    return label.labels if isinstance(label, SeveralLabels) else (label,)


def label_offset(label: Label) -> float:
    """Return the number that is added to the outputs of a model of one label: its centre, or 0 without one."""
    if not isinstance(label, RegressionLabel | ForecastLabel) or label.centre is msgspec.UNSET:
        return 0.0
    return label.centre


def label_columns(label: Label) -> tuple[str, ...]:
    """Return the columns that make the labels of training rows."""
    if isinstance(label, Unlabelled | NoLabel):
        return ()
    if isinstance(label, ForecastLabel):
        return (label.column, *BESIDE)
    if isinstance(label, SeveralLabels):
        return tuple(one_label.column for one_label in label.labels)
    return (label.column, label.group) if isinstance(label, RankingLabel) else (label.column,)
