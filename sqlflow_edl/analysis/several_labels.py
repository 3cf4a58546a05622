"""Several labels of one model: what allows them, and their kinds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError
from sqlflow_edl.analysis import labels
from sqlflow_edl.analysis.models.base import Model
from sqlflow_edl.analysis.settings.losses import LABEL_WEIGHTS as WEIGHTS
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

APART = (
    "train a model for each label, and join them: PREDICT(first, (SELECT * FROM PREDICT(second, my_rows)))"
)
_ARCHITECTURES = ("deep", "wide_deep", "real_mlp")  # of built-in models with several outputs
# Attributes of a training on one label.
_OF_ONE = (
    "loss",
    "loss.label_smoothing",
    "train.class_weights",
    "validation.threshold",
    "validation.calibration",
    "model.members",
    "model.n_classes",
)


def check(
    statement: ast.Statement,
    settings: TrainSettings,
    label_spans: Mapping[str, Span],
    errors: list[SQLFlowError],
) -> None:
    """Add errors for several labels where one model has one, and for weights of a single label."""
    if len(label_spans) < 2:
        if WEIGHTS in settings.resolved and label_spans:
            message = "label weights apply to several labels, and the statement names one"
            errors.append(SemanticError(message, span=settings.span(WEIGHTS), hint="leave them out"))
        return
    span, choice = list(label_spans.values())[1], settings.choice
    named = statement.model.span if statement.model else None
    unknown = named is not None and any(error.span == named for error in errors)
    if not unknown and choice.own is None and choice.example.architecture.name not in _ARCHITECTURES:
        name = statement.model.text if statement.model else choice.example.name
        hint = f"train a DNN, a network that predicts several; or {APART}"
        errors.append(SemanticError(f"a {name} predicts one label", span=span, hint=hint))
    for name in _OF_ONE:
        if name in settings.resolved and not (choice.own and name.startswith("model.")):
            message = f"{name} applies to one label, and the statement names {len(label_spans)}"
            errors.append(SemanticError(message, span=settings.resolved[name].key_span, hint="leave it out"))
    label_weights, theirs = settings.get(WEIGHTS), settings.own_function("loss")
    if theirs and label_weights:
        message = f"label weights apply to losses of this language, and the loss is {theirs.name}"
        errors.append(
            SemanticError(message, span=settings.span(WEIGHTS), hint="weigh the labels in that function")
        )
    elif isinstance(label_weights, tuple) and len(label_weights) != len(label_spans):
        counts = f"{len(label_weights)} label weights for {len(label_spans)} labels"
        message = f"there are {counts}: {', '.join(label_spans)}"
        errors.append(SemanticError(message, span=settings.span(WEIGHTS), hint="write one for each"))
    elif isinstance(label_weights, tuple) and not all(
        0 < float(weight) < math.inf  # type: ignore[arg-type]  # numbers
        for weight in label_weights
    ):
        message, hint = "the weight of a label must be above 0", "leave out a label that is not to be learned"
        errors.append(SemanticError(message, span=settings.span(WEIGHTS), hint=hint))


def refuse_search(statement: ast.Statement) -> None:
    """Raise SemanticError if a search has several labels."""
    if len(statement.labels) > 1:
        raise SemanticError(
            "a search compares models of one label",
            span=statement.labels[1].span,
            hint=f"name a network and one value for each attribute: TO TRAIN DNN predicts several; or {APART}",
        )


def choose(
    first: labels.WrittenLabel,
    others: Mapping[str, Span],
    statistics: Mapping[str, ColumnStatistics],
    classes: Mapping[str, labels.Values],
) -> tuple[Model, spec.SeveralLabels]:
    """Return the model of the first label, and the typed labels. Raises SemanticError if the rows cannot teach one.

    others: the places of the labels behind the first. classes: by label.
    """
    wanted_labels = [first, *(replace(first, column=name, span=span) for name, span in others.items())]
    chosen = [
        labels.choose(label, statistics[label.column], classes.get(label.column)) for label in wanted_labels
    ]
    several = spec.several_labels(label for _, label in chosen)
    first.notes[:] = [note for note in first.notes if labels.CHOSEN not in note]
    kinds = ", ".join(f"{part.column} {_kind(part)}" for part in several.labels)
    first.notes.append(f"the model predicts {len(several.labels)} labels: {kinds}")
    return chosen[0][0], several


def _kind(label: spec.Label) -> str:
    return "as a number" if label.is_number else f"by {len(label.classes)} classes"
