"""Metrics with mergeable states, so that many workers measure one figure; see `edl.metrics.base` for the contract.

from edl import metrics

def eval_metrics_fn():
    return {"rmse": metrics.RMSE(), "mae": metrics.MAE()}
"""

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
from edl.metrics.classification import (
    F1,
    Accuracy,
    Brier,
    Hinge,
    LogLoss,
    Precision,
    Recall,
    at_threshold,
    decide_class,
)
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
from edl.metrics.labels import OfLabel, of_label
from edl.metrics.merging import merge_kind, merge_states
from edl.metrics.names import DEFAULTS, Kind, by_name, kind_of, names
from edl.metrics.predicted_means import PredictedMeans
from edl.metrics.ranking import MAP, NDCG, RankingMetric
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
from edl.metrics.residuals import AbsoluteErrors, MedianAbsoluteError
from edl.metrics.states import State, dump, load

__all__ = [
    "AUC",
    "DEFAULTS",
    "F1",
    "MAE",
    "MAP",
    "MAPE",
    "MASE",
    "MCC",
    "MSE",
    "MSLE",
    "NDCG",
    "R2",
    "RMSE",
    "RMSLE",
    "SMAPE",
    "AbsoluteErrors",
    "Accuracy",
    "AnomalyRate",
    "AutoETSMAE",
    "AutoETSMASE",
    "AutoETSRMSE",
    "AveragePrecision",
    "BalancedAccuracy",
    "Bias",
    "Brier",
    "CohenKappa",
    "Coverage",
    "ErrorRate",
    "ExplainedVariance",
    "ExplainedVarianceRatio",
    "FBeta",
    "FalseNegatives",
    "FalsePositives",
    "Hinge",
    "Inertia",
    "Jaccard",
    "Kind",
    "LogCosh",
    "LogLoss",
    "MaxError",
    "MedianAbsoluteError",
    "Metric",
    "OfLabel",
    "Precision",
    "PredictedMeans",
    "RankingMetric",
    "Recall",
    "ReconstructionMAE",
    "ReconstructionMSE",
    "SeasonalNaiveMAE",
    "SeasonalNaiveMASE",
    "SeasonalNaiveRMSE",
    "Silhouette",
    "Specificity",
    "State",
    "TopKAccuracy",
    "TrueNegatives",
    "TruePositives",
    "at_threshold",
    "by_name",
    "decide_class",
    "dump",
    "kind_of",
    "load",
    "merge_kind",
    "merge_states",
    "names",
    "of_label",
]
