"""Loss of a TRAIN statement: the loss it names, the loss in the model's own module, or the label's default."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edl import spec
from edl.errors import Advice, SemanticError, SQLFlowError
from sqlflow_edl.analysis import catalog
from sqlflow_edl.analysis.entries import Entry
from sqlflow_edl.analysis.losses import LOSSES
from sqlflow_edl.analysis.models.base import Model
from sqlflow_edl.analysis.rows import row_weights
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

LABEL_WEIGHTS = "train.label_weights"


def loss(
    settings: TrainSettings,
    model: Entry,
    label: spec.Label,
    column_statistics: ColumnStatistics,
    errors: list[SQLFlowError],
) -> spec.Component:
    """Return the loss with its parameters and the class weights. column_statistics: the statistics of the label."""
    if label.labels:
        return settings.own_function("loss") or _of_several(settings, label)
    class_weights = row_weights.of_classes(settings, label, column_statistics, errors)
    if theirs := settings.own_function("loss"):
        if class_weights:
            errors.append(row_weights.refuse_classes(settings, theirs.name))
        return theirs
    named = _resolve_loss(settings, model, errors)
    errors += [*_check_labels(settings, named, label, column_statistics), *_check_smoothing(settings, named)]
    params = catalog.parameters(named, settings.resolved)
    if label.tells_anomalies:
        params["contamination"] = catalog.parameters(model, settings.resolved)["contamination"]
    more = {"class_weights": class_weights} if class_weights else {}
    return spec.Component(named.name, {**params, **more})


def _of_several(settings: TrainSettings, label: spec.Label) -> spec.Component:
    """Return the loss of several labels: of each its usual one, times its weight."""
    weights_setting = settings.get(LABEL_WEIGHTS)
    weights = weights_setting if isinstance(weights_setting, tuple) else (1.0,) * len(label.labels)
    return spec.Component("weighted_sum", {"weights": weights})


# By task; of classes cross_entropy.
_DEFAULTS = {
    "regression": "mean_squared_error",
    "ranking": "lambdarank",
    "clustering": "squared_distance",
    "anomaly detection": "threshold_quantile",
    "dimensionality reduction": "reconstruction_error",
    "forecasting": "mean_absolute_error",
}


def _resolve_loss(settings: TrainSettings, model: Entry, errors: list[SQLFlowError]) -> Entry:
    resolved = LOSSES.entries[settings.loss or _usual(model)]
    if settings.framework not in resolved.frameworks:
        fitting = [
            candidate.name
            for candidate in _losses_of_model(model)
            if settings.framework in candidate.frameworks
        ]
        errors.append(
            SemanticError(
                f"models of {settings.framework} have no loss {resolved.name}",
                span=settings.span("loss"),
                hint="there are " + ", ".join(fitting),
            )
        )
    if resolved not in _losses_of_model(model):
        fitting = [entry.name for entry in _losses_of_model(model) if settings.framework in entry.frameworks]
        errors.append(
            SemanticError(
                f"the loss {resolved.name} is for {resolved.task}, {model.name} does {model.task}"
                if resolved.task != model.task
                else f"{model.name} has no loss {resolved.name}",
                span=settings.span("loss"),
                hint="there are " + ", ".join(fitting),
            )
        )
    return resolved


def _usual(model: Entry) -> str:
    default = model.defaults.get("loss") if isinstance(model, Model) else None
    return str(default or _DEFAULTS.get(model.task or "", "cross_entropy"))


def _losses_of_model(model: Entry) -> list[Entry]:
    if model.task == "clustering":
        return [LOSSES.entries[_usual(model)]]
    if model.task == "forecasting":
        return [LOSSES.entries[name] for name in ("mean_absolute_error", "mean_squared_error")]
    return [entry for entry in LOSSES.entries.values() if entry.task == model.task]


_LEAST = {
    "poisson": 0.0,
    "squared_log_error": 0.0,
    "tweedie": 0.0,
    "gamma": math.ulp(0.0),
}  # label of a distribution


def _check_labels(
    settings: TrainSettings, loss: Entry, label: spec.Label, column_statistics: ColumnStatistics
) -> list[SQLFlowError]:
    """Return an error if labels are impossible under the distribution that the loss assumes.

    The hinge loss of trees has one margin, between two classes.
    """
    if loss.name == "hinge" and settings.framework in spec.TREES and not label.is_binary:
        return [
            SemanticError(
                f"the loss hinge of trees is for two classes, and {label.column} has {len(label.classes):,} classes",
                span=settings.span("loss"),
                hint=Advice("write multi:softprob", "multi:softprob"),
            )
        ]
    least = _LEAST.get(loss.name)
    if least is None or not label.is_number:
        return []
    range_needed = "above 0" if least else "from 0"
    if offset := spec.label_offset(label):  # of the model that USING names
        learned = f"the model learned {label.column} less {offset:.17g}"
        message = f"the loss {loss.name} needs labels {range_needed}, and {learned}"
        return [SemanticError(message, span=settings.span("loss"), hint="leave USING out, or the loss")]
    if column_statistics.min >= least:
        return []
    lowest = f"{label.column} goes down to {column_statistics.min:g}"
    message = f"the loss {loss.name} needs labels {range_needed}, and {lowest}"
    return [
        SemanticError(message, span=settings.span("loss"), hint="leave such rows out, or name another loss")
    ]


def _check_smoothing(settings: TrainSettings, loss: Entry) -> list[SQLFlowError]:
    """Return an error if labels are to be smoothed and the loss does not do that."""
    attribute = settings.resolved.get("loss.label_smoothing")
    if attribute is None or (loss.name == "cross_entropy" and settings.framework not in spec.TREES):
        return []
    of = loss.name if loss.name != "cross_entropy" else f"{loss.name} of {settings.framework}"
    return [
        SemanticError(
            f"the loss {of} has no label smoothing",
            span=attribute.key_span,
            hint="leave it out; networks have it for cross_entropy, the usual loss of classes",
        )
    ]
