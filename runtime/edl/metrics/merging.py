"""Merging of metric states without the program that defines them: the master knows built-in metrics, by kind."""

from __future__ import annotations

from collections.abc import Mapping

from edl.metrics.auc import AUC
from edl.metrics.base import Metric
from edl.metrics.calibration import TemperedLoss
from edl.metrics.classification import F1, Accuracy, AtThreshold, ConfusionMatrix, LogLoss, Precision, Recall
from edl.metrics.importance import Importance
from edl.metrics.labels import OfLabel
from edl.metrics.predicted_means import PredictedMeans
from edl.metrics.ranking import NDCG, RankingMetric
from edl.metrics.regression import MAE, MAPE, MSE, R2, RMSE
from edl.metrics.residuals import AbsoluteErrors
from edl.metrics.score_curves import ScoreHistogram
from edl.metrics.states import State

_KINDS: dict[str, Metric] = {
    **{kind.name: kind() for kind in (Accuracy, F1, LogLoss, Precision, Recall, MAE, MAPE, MSE, R2, RMSE)},
    **{
        kind.name: kind()
        for kind in (
            AbsoluteErrors,
            ConfusionMatrix,
            Importance,
            PredictedMeans,
            ScoreHistogram,
            TemperedLoss,
        )
    },
    "auc": AUC(),
    "exact auc": AUC(exact=True),
    "ranking": NDCG(),
}


def merge_kind(metric: Metric) -> str:
    """Return the kind by which states of the metric merge; empty for a metric that is not built in.

    A threshold changes what is counted, not how counts merge. The states of all rankings are their rows.
    """
    if isinstance(metric, RankingMetric):
        return "ranking"
    if isinstance(metric, AtThreshold | OfLabel):
        return merge_kind(metric.metric)
    return next(
        (kind for kind, ours in _KINDS.items() if type(ours) is type(metric) and vars(ours) == vars(metric)),
        "",
    )


def merge_states(
    kinds: Mapping[str, str], one: Mapping[str, State], other: Mapping[str, State]
) -> dict[str, State] | None:
    """Return the states of the rows of both, or None if a metric's kind is unknown. `kinds` maps names of metrics."""
    if any(kinds.get(name, "") not in _KINDS for name in one):
        return None
    return {name: _KINDS[kinds[name]].merge(state, other[name]) for name, state in one.items()}
