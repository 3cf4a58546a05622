"""Labels as data: what a model predicts, and the form of its labels and outputs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import ClassVar, Literal

import msgspec

from edl.spec.forecast import BESIDE

Task = Literal[
    "regression", "binary", "multiclass", "ranking", "clusters", "anomalies", "forecast", "reduction"
]


class BaseLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op"):
    """Properties of all labels. Fields that a kind lacks have a value without an effect here."""

    is_number: ClassVar[bool] = False  # one number, of which errors have a unit
    has_classes: ClassVar[bool] = False
    is_forecast: ClassVar[bool] = False
    tells_anomalies: ClassVar[bool] = False
    is_unsupervised: ClassVar[bool] = False  # found without a label
    is_declared: ClassVar[bool] = True  # it is known what the model predicts

    @property
    def outputs(self) -> int:
        """Number of outputs of the model; 0 if it is unknown before the model exists."""
        return 1

    @property
    def scores(self) -> int:
        """Number of scores of a row: one for each class, cluster or quantile, else 1."""
        return 1

    @property
    def task(self) -> Task | None:
        """Kind of the metrics by name; None without any."""
        return None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that make the labels of training rows."""
        return ()

    @property
    def parts(self) -> tuple[Label, ...]:
        """Labels of the model, one or several; none of a transform."""
        return (self,)  # type: ignore[return-value]  # a member of the union

    @property
    def labels(self) -> tuple[RegressionLabel | ClassLabel, ...]:
        """Several labels that one model predicts; empty of a single one."""
        return ()

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """First output of each of several labels, and the first one behind it."""
        return _side_by_side(label.outputs for label in self.labels)

    @property
    def score_places(self) -> tuple[tuple[int, int], ...]:
        """Places of each label among the scores, of which a class has one each."""
        return _side_by_side(label.scores for label in self.labels)

    @property
    def classes(self) -> tuple[str | bool | int, ...]:
        return ()

    @property
    def is_binary(self) -> bool:
        """True for two classes."""
        return False

    @property
    def clusters(self) -> int:
        return 0

    @property
    def dimensions(self) -> int:
        """Number of numbers that stand for the features of a row."""
        return 0

    @property
    def quantiles(self) -> tuple[float, ...]:
        return ()

    @property
    def group(self) -> str:
        """Column of the groups in which a model orders rows; empty if it orders none."""
        return ""

    @property
    def mean(self) -> float:
        return 0.0

    @property
    def std(self) -> float:
        return 1.0

    @property
    def centre(self) -> float | msgspec.UnsetType:
        """Number that is added to the outputs of the model."""
        return msgspec.UNSET


class RegressionLabel(BaseLabel, frozen=True, tag="regression"):
    """Number to predict. Labels are float32 of shape (n, 1), those to measure float64; the model has one output.

    `mean` and `std` are of the training rows. A built-in model ends with `outputs * std + mean` and measures its loss
    in units of std, so that a learning rate means the same for an income as for a ratio.

    With a `centre` the model learns the number less it, which float32 holds more exactly than the number itself, as of
    seconds since 1970. `mean` is then the mean of the differences, and the centre is added to the outputs in float64.
    """

    is_number: ClassVar[bool] = True

    column: str
    mean: float = 0.0
    std: float = 1.0
    centre: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def task(self) -> Task:
        return "regression"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


class ClassLabel(BaseLabel, frozen=True, tag="class"):
    """Class to predict, one of `classes` in their natural order: all text, all integers or all booleans.

    With two classes, labels are float32 of shape (n, 1), and there is one logit, for `classes[1]`. With more, labels
    are int64 of shape (n,), with a logit for each class.
    """

    has_classes: ClassVar[bool] = True

    column: str
    classes: tuple[str | bool | int, ...]

    @property
    def is_binary(self) -> bool:
        return len(self.classes) == 2

    @property
    def outputs(self) -> int:
        return 1 if self.is_binary else len(self.classes)

    @property
    def scores(self) -> int:
        return len(self.classes)

    @property
    def task(self) -> Task:
        return "binary" if self.is_binary else "multiclass"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


class RankingLabel(BaseLabel, frozen=True, tag="ranking"):
    """Relevance of a row, by which a model orders the rows of each group: whole numbers from 0, higher is better.

    The rows of a group have the same value of the column `group`. Labels are int64 of shape (n, 2), the relevance and a
    number of the group; the model has one output, the score.
    """

    column: str
    group: str

    @property
    def task(self) -> Task:
        return "ranking"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, self.group)


class ClusterLabel(BaseLabel, frozen=True, tag="cluster"):
    """Cluster of a row, which a model finds without labels: a whole number from 0 below `clusters`.

    No column of the training rows is read for it; `column` names the predicted one. Labels are int64 zeros of shape
    (n,); the model has an output for each cluster, the squared distance to its centre.
    """

    is_unsupervised: ClassVar[bool] = True

    clusters: int
    column: str = "cluster"

    @property
    def outputs(self) -> int:
        return self.clusters

    @property
    def scores(self) -> int:
        return self.clusters

    @property
    def task(self) -> Task:
        return "clusters"


ANOMALOUS = 0.5  # score above which a row is an anomaly


class AnomalyLabel(BaseLabel, frozen=True, tag="anomaly"):
    """True for an unusual row, which a model finds without labels.

    No column of the training rows is read for it; `column` names the predicted one. Labels are float32 zeros of shape
    (n, 1); the model has one output, the log-odds of an anomaly.
    """

    is_unsupervised: ClassVar[bool] = True
    tells_anomalies: ClassVar[bool] = True

    column: str = "anomaly"

    @property
    def task(self) -> Task:
        return "anomalies"


ERRORS = 3  # outputs behind the numbers of a reduction


class ReductionLabel(BaseLabel, frozen=True, tag="reduction"):
    """A few numbers in place of the features of a row, found without a label: principal components, or codes.

    No column of the training rows is read for it; the predicted columns are `column_1`, `column_2`, …. Labels are int64
    zeros of shape (n,). The outputs of the model are the numbers, the mean squared and the mean absolute error with
    which they restore the features, and the mean squared feature, less its mean in a linear model.
    """

    is_unsupervised: ClassVar[bool] = True

    dimensions: int
    column: str

    @property
    def outputs(self) -> int:
        return self.dimensions + ERRORS

    @property
    def scores(self) -> int:
        return self.outputs

    @property
    def task(self) -> Task:
        return "reduction"


class ForecastLabel(BaseLabel, frozen=True, tag="forecast"):
    """Value of a time series at a later time.

    Labels are float32 of shape (n, 5): the value, its seasonal naive forecast, the mean absolute error of such
    forecasts in the series until then, the scale of the series, and the forecast of AutoETS, NaN outside of a backtest.
    The outputs of the model are the forecast and its `quantiles`, in rising order. With a `centre` the model learns
    values, forecasts and levels less it, see `RegressionLabel`.
    """

    is_forecast: ClassVar[bool] = True

    column: str
    quantiles: tuple[float, ...] = ()
    centre: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def outputs(self) -> int:
        return 1 + len(self.quantiles)

    @property
    def scores(self) -> int:
        return self.outputs

    @property
    def task(self) -> Task:
        return "forecast"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, *BESIDE)


class RawLabel(BaseLabel, frozen=True, tag="raw"):
    """Label of a hand-written module that does not declare what it predicts: the model's outputs are unchanged."""

    is_declared: ClassVar[bool] = False

    column: str

    @property
    def outputs(self) -> int:
        """Zero: the number is unknown before the model exists."""
        return 0

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


class NoLabel(BaseLabel, frozen=True, tag="none"):
    """Label of a transform, which predicts nothing."""

    column: str = ""

    @property
    def outputs(self) -> int:
        return 0

    @property
    def parts(self) -> tuple[Label, ...]:
        return ()


class SeveralLabels(BaseLabel, frozen=True, tag="several"):
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
    def scores(self) -> int:
        return sum(label.scores for label in self.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(label.column for label in self.labels)

    @property
    def parts(self) -> tuple[Label, ...]:
        return self.labels


def _side_by_side(widths: Iterable[int]) -> tuple[tuple[int, int], ...]:
    ends = tuple(accumulate(widths))
    return tuple(zip((0, *ends), ends, strict=False))


Label = (
    RegressionLabel
    | ClassLabel
    | RankingLabel
    | ClusterLabel
    | AnomalyLabel
    | ReductionLabel
    | ForecastLabel
    | RawLabel
    | NoLabel
    | SeveralLabels
)


def each_label(label: Label) -> tuple[Label, ...]:
    """Return the labels of a model, one or several; none of a transform."""
    return label.parts


def several_labels(labels: Iterable[Label]) -> SeveralLabels:
    """Return one label of the numbers and classes among the labels."""
    return SeveralLabels(tuple(label for label in labels if isinstance(label, RegressionLabel | ClassLabel)))


def label_offset(label: Label) -> float:
    """Return the number that is added to the outputs of a model of one label: its centre, or 0 without one."""
    return 0.0 if label.centre is msgspec.UNSET else label.centre


def label_columns(label: Label) -> tuple[str, ...]:
    """Return the columns that make the labels of training rows."""
    return label.columns
