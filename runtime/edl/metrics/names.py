"""Names of metrics in SQL, and the kinds of labels that they suit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from edl.errors import SemanticError, nearest
from edl.metrics.auc import AUC
from edl.metrics.base import Metric
from edl.metrics.classification import F1, Accuracy, LogLoss, Precision, Recall
from edl.metrics.regression import MAE, MAPE, MSE, R2, RMSE
from edl.spec import Label, RawLabel, RegressionLabel

Kind = Literal["regression", "binary", "multiclass"]


@dataclass(frozen=True, slots=True)
class _Row:
    make: Callable[[], Metric]
    classes: bool  # for a predicted class, not a number
    aliases: tuple[str, ...]


# Names are compared without case, blanks, dots, dashes and underscores.
_TABLE: dict[str, _Row] = {
    "accuracy": _Row(
        Accuracy,
        True,
        ("acc", "BinaryAccuracy", "CategoricalAccuracy", "SparseCategoricalAccuracy", "accuracy_score"),
    ),
    "precision": _Row(Precision, True, ("precision_score", "PositivePredictiveValue")),
    "recall": _Row(Recall, True, ("recall_score", "sensitivity", "TruePositiveRate")),
    "f1": _Row(F1, True, ("f1_score", "F1Score", "f_score", "FMeasure")),
    "auc": _Row(AUC, True, ("roc_auc", "auc_roc", "roc_auc_score", "AreaUnderCurve")),
    "log_loss": _Row(
        LogLoss,
        True,
        (
            "CrossEntropy",
            "BinaryCrossentropy",
            "CategoricalCrossentropy",
            "SparseCategoricalCrossentropy",
            "nll",
        ),
    ),
    "rmse": _Row(RMSE, False, ("RootMeanSquaredError", "root_mean_square_error")),
    "mae": _Row(MAE, False, ("MeanAbsoluteError", "l1")),
    "r2": _Row(R2, False, ("r2_score", "R2Score", "r_squared", "CoefficientOfDetermination")),
    "mse": _Row(MSE, False, ("MeanSquaredError", "mean_square_error", "l2")),
    "mape": _Row(MAPE, False, ("MeanAbsolutePercentageError",)),
}

DEFAULTS: dict[Kind, tuple[str, ...]] = {
    "regression": ("rmse", "mae", "r2"),
    "binary": ("accuracy", "auc", "log_loss", "precision", "recall", "f1"),
    "multiclass": ("accuracy", "log_loss", "f1"),
}


def kind_of(label: Label) -> Kind:
    """Return the kind of label, which selects its metrics."""
    if isinstance(label, RegressionLabel):
        return "regression"
    if isinstance(label, RawLabel):
        raise SemanticError("metrics by name need a label, which the model does not declare")
    return "binary" if label.binary else "multiclass"


def names(kind: Kind | None) -> tuple[str, ...]:
    """Return the names of all metrics that suit the kind of label; for None, of all metrics."""
    return tuple(name for name, row in _TABLE.items() if not kind or row.classes == (kind != "regression"))


def by_name(name: str, kind: Kind | None, *, exact: bool = False) -> Metric:
    """Return the metric with that name or alias. Programs and reports write its class and `.name`.

    `kind` is that of the label, or None if unknown. `exact` selects scikit-learn's figure where training
    approximates. Raises SemanticError for an unknown name, or a metric that does not suit the kind of label.
    """
    folded = _fold(name)
    for canonical, row in _TABLE.items():
        if folded in map(_fold, (canonical, *row.aliases)):
            if kind and row.classes != (kind != "regression"):
                raise _unsuitable(canonical, kind)
            return AUC(exact=exact) if row.make is AUC else row.make()
    raise SemanticError(f"there is no metric {name}", hint=_suggestion(name, kind))


def _fold(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _unsuitable(name: str, kind: Kind) -> SemanticError:
    predicted = "a number" if kind == "regression" else "a class"
    other = "classes" if kind == "regression" else "numbers"
    return SemanticError(
        f"{name} measures predicted {other}, this label is {predicted}",
        hint=f"for {predicted}: {', '.join(names(kind))}",
    )


def _suggestion(name: str, kind: Kind | None) -> str:
    spellings = {
        spelling: canonical
        for canonical in names(kind)
        for spelling in (canonical, *_TABLE[canonical].aliases)
    }
    near = nearest(name, spellings)
    return f"did you mean {spellings[near]}?" if near else f"known: {', '.join(names(kind))}"
