"""Metrics with mergeable states, so that many workers measure one figure; see `edl.metrics.base` for the contract.

from edl import metrics

def eval_metrics_fn():
    return {"rmse": metrics.RMSE(), "mae": metrics.MAE()}
"""

from edl.metrics.auc import AUC
from edl.metrics.base import Metric
from edl.metrics.classification import F1, Accuracy, LogLoss, Precision, Recall, at_threshold, decided
from edl.metrics.clusters import AnomalyRate, Inertia, Silhouette
from edl.metrics.forecasts import MASE, Coverage, SeasonalNaiveMAE, SeasonalNaiveMASE, SeasonalNaiveRMSE
from edl.metrics.merging import merge_kind, merge_states
from edl.metrics.names import DEFAULTS, Kind, by_name, kind_of, names
from edl.metrics.ranking import MAP, NDCG, RankingMetric
from edl.metrics.regression import MAE, MAPE, MSE, R2, RMSE
from edl.metrics.residuals import AbsoluteErrors
from edl.metrics.states import State, dump, load

__all__ = [
    "AUC",
    "DEFAULTS",
    "F1",
    "MAE",
    "MAP",
    "MAPE",
    "MASE",
    "MSE",
    "NDCG",
    "R2",
    "RMSE",
    "AbsoluteErrors",
    "Accuracy",
    "AnomalyRate",
    "Coverage",
    "Inertia",
    "Kind",
    "LogLoss",
    "Metric",
    "Precision",
    "RankingMetric",
    "Recall",
    "SeasonalNaiveMAE",
    "SeasonalNaiveMASE",
    "SeasonalNaiveRMSE",
    "Silhouette",
    "State",
    "at_threshold",
    "by_name",
    "decided",
    "dump",
    "kind_of",
    "load",
    "merge_kind",
    "merge_states",
    "names",
]
