"""Names of metrics in SQL, and the kinds of labels that they suit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

from edl.errors import SemanticError, nearest, suggest_name
from edl.metrics.agreement import (
    MCC,
    BalancedAccuracy,
    CohenKappa,
    ErrorRate,
    FalseNegatives,
    FalsePositives,
    FBeta,
    Jaccard,
    Specificity,
    TopKAccuracy,
    TrueNegatives,
    TruePositives,
)
from edl.metrics.auc import AUC, AveragePrecision
from edl.metrics.base import Metric
from edl.metrics.classification import F1, Accuracy, Brier, Hinge, LogLoss, Precision, Recall
from edl.metrics.clusters import AnomalyRate, Inertia, Silhouette
from edl.metrics.forecasts import (
    MASE,
    AutoETSMAE,
    AutoETSMASE,
    AutoETSRMSE,
    Coverage,
    SeasonalNaiveMAE,
    SeasonalNaiveMASE,
    SeasonalNaiveRMSE,
)
from edl.metrics.ranking import MAP, NDCG
from edl.metrics.reductions import ExplainedVarianceRatio, ReconstructionMAE, ReconstructionMSE
from edl.metrics.regression import (
    MAE,
    MAPE,
    MSE,
    MSLE,
    R2,
    RMSE,
    RMSLE,
    SMAPE,
    Bias,
    ExplainedVariance,
    LogCosh,
    MaxError,
)
from edl.metrics.residuals import MedianAbsoluteError
from edl.spec import (
    Label,
)
from edl.spec.labels import Task

Kind = Task  # of label, which has metrics by name
_Predicted = Literal["number", "class", "ranking", "cluster", "anomaly", "forecast", "reduction"]
_PREDICTED: dict[Kind, _Predicted] = {
    "regression": "number",
    "binary": "class",
    "multiclass": "class",
    "ranking": "ranking",
    "clusters": "cluster",
    "anomalies": "anomaly",
    "forecast": "forecast",
    "reduction": "reduction",
}
_PLURAL: dict[_Predicted, str] = {
    "number": "numbers",
    "class": "classes",
    "ranking": "rankings",
    "cluster": "clusters",
    "anomaly": "anomalies",
    "forecast": "forecasts",
    "reduction": "reductions",
}


@dataclass(frozen=True, slots=True)
class _Row:
    make: Callable[..., Metric]
    of: _Predicted
    aliases: tuple[str, ...]


# Names are compared without case, blanks, dots, dashes and underscores.
_TABLE: dict[str, _Row] = {
    "accuracy": _Row(
        Accuracy,
        "class",
        ("acc", "BinaryAccuracy", "CategoricalAccuracy", "SparseCategoricalAccuracy", "accuracy_score"),
    ),
    "precision": _Row(Precision, "class", ("precision_score", "PositivePredictiveValue")),
    "recall": _Row(Recall, "class", ("recall_score", "sensitivity", "TruePositiveRate")),
    "f1": _Row(F1, "class", ("f1_score", "F1Score", "f_score", "FMeasure")),
    "auc": _Row(AUC, "class", ("roc_auc", "auc_roc", "roc_auc_score", "AreaUnderCurve")),
    "log_loss": _Row(
        LogLoss,
        "class",
        (
            "CrossEntropy",
            "logloss",
            "mlogloss",
            "BinaryCrossentropy",
            "CategoricalCrossentropy",
            "SparseCategoricalCrossentropy",
            "nll",
        ),
    ),
    "balanced_accuracy": _Row(BalancedAccuracy, "class", ("balanced_accuracy_score",)),
    "mcc": _Row(MCC, "class", ("matthews_corrcoef", "MatthewsCorrelationCoefficient", "phi")),
    "cohen_kappa": _Row(CohenKappa, "class", ("kappa", "cohen_kappa_score", "CohensKappa")),
    "average_precision": _Row(
        AveragePrecision, "class", ("average_precision_score", "pr_auc", "auc_pr", "aucpr", "auprc")
    ),
    "brier": _Row(Brier, "class", ("brier_score", "brier_score_loss", "brier_loss")),
    "specificity": _Row(Specificity, "class", ("TrueNegativeRate", "selectivity")),
    "jaccard": _Row(Jaccard, "class", ("jaccard_score", "MeanIoU", "iou")),
    "error_rate": _Row(ErrorRate, "class", ("zero_one_loss", "hamming_loss", "error")),
    "top_k_accuracy@5": _Row(
        TopKAccuracy,
        "class",
        ("TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy", "top_k_accuracy_score"),
    ),
    "fbeta@2": _Row(partial(FBeta, 2), "class", ("fbeta_score", "FBetaScore")),
    "true_positives": _Row(TruePositives, "class", ()),
    "false_positives": _Row(FalsePositives, "class", ()),
    "true_negatives": _Row(TrueNegatives, "class", ()),
    "false_negatives": _Row(FalseNegatives, "class", ()),
    "hinge_loss": _Row(Hinge, "class", ("hinge",)),
    "rmse": _Row(RMSE, "number", ("RootMeanSquaredError", "root_mean_square_error")),
    "mae": _Row(MAE, "number", ("MeanAbsoluteError", "l1")),
    "r2": _Row(R2, "number", ("r2_score", "R2Score", "r_squared", "CoefficientOfDetermination")),
    "mse": _Row(MSE, "number", ("MeanSquaredError", "mean_square_error", "l2")),
    "mape": _Row(MAPE, "number", ("MeanAbsolutePercentageError",)),
    "smape": _Row(SMAPE, "number", ("SymmetricMeanAbsolutePercentageError",)),
    "msle": _Row(MSLE, "number", ("MeanSquaredLogarithmicError", "mean_squared_log_error")),
    "rmsle": _Row(RMSLE, "number", ("RootMeanSquaredLogarithmicError", "root_mean_squared_log_error")),
    "log_cosh": _Row(LogCosh, "number", ("LogCoshError",)),
    "max_error": _Row(MaxError, "number", ("MaximumError",)),
    "explained_variance": _Row(ExplainedVariance, "number", ("explained_variance_score",)),
    "median_absolute_error": _Row(MedianAbsoluteError, "number", ("median_ae", "medae")),
    "bias": _Row(Bias, "number", ("MeanError", "mean_bias_error", "mbe")),
    "ndcg@10": _Row(partial(NDCG, 10), "ranking", ()),
    "map": _Row(MAP, "ranking", ("MeanAveragePrecision", "average_precision")),
    "ndcg": _Row(NDCG, "ranking", ("ndcg_score", "NormalizedDiscountedCumulativeGain")),
    "inertia": _Row(Inertia, "cluster", ("mean_squared_distance",)),
    "anomaly_rate": _Row(AnomalyRate, "anomaly", ()),
    "mase": _Row(MASE, "forecast", ("MeanAbsoluteScaledError",)),
    "seasonal_naive_mase": _Row(SeasonalNaiveMASE, "forecast", ()),
    "seasonal_naive_mae": _Row(SeasonalNaiveMAE, "forecast", ()),
    "seasonal_naive_rmse": _Row(SeasonalNaiveRMSE, "forecast", ()),
    "auto_ets_mase": _Row(AutoETSMASE, "forecast", ()),
    "auto_ets_mae": _Row(AutoETSMAE, "forecast", ()),
    "auto_ets_rmse": _Row(AutoETSRMSE, "forecast", ()),
    "coverage": _Row(Coverage, "forecast", ()),
    "explained_variance_ratio": _Row(
        ExplainedVarianceRatio, "reduction", ("total_explained_variance_ratio",)
    ),
    "reconstruction_mse": _Row(
        ReconstructionMSE, "reduction", ("mse", "mean_squared_error", "reconstruction_error")
    ),
    "reconstruction_mae": _Row(ReconstructionMAE, "reduction", ("mae", "mean_absolute_error")),
    "silhouette": _Row(Silhouette, "cluster", ("simplified_silhouette", "silhouette_score")),
}
# Metrics with a number: of the first rows or classes, ndcg@5, top_k_accuracy@3; with a weight of the recall, fbeta@2
_FIRST: dict[str, tuple[Callable[[int], Metric], _Predicted]] = {
    "ndcg": (NDCG, "ranking"),
    "map": (MAP, "ranking"),
    "top_k_accuracy": (TopKAccuracy, "class"),
    "fbeta": (FBeta, "class"),
}

DEFAULTS: dict[Kind, tuple[str, ...]] = {
    "regression": ("rmse", "mae", "r2"),
    "binary": ("accuracy", "auc", "log_loss", "precision", "recall", "f1"),
    "multiclass": ("accuracy", "log_loss", "f1"),
    "ranking": ("ndcg@10", "map"),
    "clusters": ("inertia", "silhouette"),
    "anomalies": ("anomaly_rate",),
    "reduction": ("explained_variance_ratio", "reconstruction_mse", "reconstruction_mae"),
    "forecast": (
        "mase",
        "seasonal_naive_mase",
        "auto_ets_mase",
        "mae",
        "seasonal_naive_mae",
        "auto_ets_mae",
        "rmse",
        "seasonal_naive_rmse",
        "auto_ets_rmse",
    ),
}


def kind_of(label: Label) -> Kind:
    """Return the kind of label; it selects the metrics."""
    task = label.task
    if task is None:
        raise SemanticError("metrics by name need a model with one label")
    return task


def names(kind: Kind | None) -> tuple[str, ...]:
    """Return the names of all metrics that suit the kind of label; for None, of all metrics."""
    return tuple(name for name, row in _TABLE.items() if not kind or _suits(row, kind))


def by_name(name: str, kind: Kind | None, *, exact: bool = False) -> Metric:
    """Return the metric with that name or alias. Programs and reports write its class and `.name`.

    `kind` is the kind of the label, or None if unknown. `exact` selects scikit-learn's figure where training
    approximates. Raises SemanticError for an unknown name, or a metric that does not suit the kind of label.
    """
    folded = _fold(name)
    base, _, first = name.rpartition("@")
    if base.strip().casefold() in _FIRST and first.strip().isdecimal() and 0 < int(first) < 10**6:
        make, of = _FIRST[base.strip().casefold()]
        if kind and _PREDICTED[kind] != of:
            raise _unsuitable_error(name, of, kind)
        return make(int(first))
    named = [(canonical, _TABLE[canonical]) for canonical in _by_spelling().get(folded, ())]
    for _, row in named:
        if kind is None or _suits(row, kind):
            return row.make(exact=exact) if row.make in (AUC, AveragePrecision) else row.make()
    if named and kind:
        canonical, row = named[0]
        raise _unsuitable_error(canonical, row.of, kind)
    raise SemanticError(f"there is no metric {name}", hint=_suggestion(name, kind))


@cache
def _by_spelling() -> dict[str, list[str]]:
    """Return the metrics that each folded name or alias stands for, in the order of the table."""
    canonicals: dict[str, list[str]] = {}
    for canonical, row in _TABLE.items():
        for spelling in dict.fromkeys(map(_fold, (canonical, *row.aliases))):
            canonicals.setdefault(spelling, []).append(canonical)
    return canonicals


def _fold(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _suits(row: _Row, kind: Kind) -> bool:
    """Return True if the metric measures what is predicted. A forecast is a number, too."""
    return row.of == _PREDICTED[kind] or (kind == "forecast" and row.of == "number")


def _unsuitable_error(name: str, of: _Predicted, kind: Kind) -> SemanticError:
    predicted = f"{'an' if kind == 'anomalies' else 'a'} {_PREDICTED[kind]}"
    return SemanticError(
        f"{name} measures predicted {_PLURAL[of]}, this label is {predicted}",
        hint=f"for {predicted}: {', '.join(names(kind))}",
    )


def _suggestion(name: str, kind: Kind | None) -> str:
    spellings = {
        spelling: canonical
        for canonical in names(kind)
        for spelling in (canonical, *_TABLE[canonical].aliases)
    }
    near = nearest(name, spellings)
    return suggest_name(spellings[near]) if near else f"known: {', '.join(names(kind))}"
