"""Weights of rows: `train.weight_column` and `train.class_weights`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from edl import spec
from edl.errors import SemanticError, SQLFlowError, did_you_mean
from edl.features.weights import unusable_error
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.settings.values import to_python
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

COLUMN, CLASSES = "train.weight_column", "train.class_weights"


def column(settings: TrainSettings, schema: Schema, label: str, errors: list[SQLFlowError]) -> str:
    """Return the weight column, empty without one; add an error if it is unusable."""
    if settings.get(COLUMN) is None:
        return ""
    name, error = settings.column(COLUMN, schema, {label}, "is the label; it cannot weigh the rows too")
    if error is None and schema.type(name) not in (ColumnType.NUMBER, ColumnType.BOOLEAN):
        wrong = f"{name} is {schema.type(name).words}, and a weight is a number"
        error = SemanticError(wrong, span=settings.span(COLUMN))
    errors += [error] if error else []
    return name


def of_rows(
    settings: TrainSettings,
    column: str,
    statistics: Mapping[str, ColumnStatistics],
    errors: list[SQLFlowError],
) -> spec.Weights | None:
    """Return the weights of a JobSpec, or None if all rows weigh the same."""
    if not column:
        return None
    column_statistics = statistics[column]
    wrong = None
    if column_statistics.nulls:
        wrong = unusable_error(column, "NULL or not finite", column_statistics.nulls, column_statistics.rows)
    elif column_statistics.min < 0:
        wrong = SemanticError(
            f"the weight {column} is negative in some rows, down to {column_statistics.min:g}",
            hint="a weight must be 0 or more",
        )
    elif column_statistics.max <= 0:
        wrong = SemanticError(f"the weight {column} is 0 in every training row", hint="0 leaves a row out")
    if wrong:
        wrong.span = settings.span(COLUMN)
        errors.append(wrong)
        return None
    return spec.Weights(column, column_statistics.mean)


def of_classes(
    settings: TrainSettings,
    label: spec.Label,
    column_statistics: ColumnStatistics,
    errors: list[SQLFlowError],
) -> tuple[float, ...]:
    """Return a weight for each class of the label, in their order; empty if none is written."""
    attribute = settings.resolved.get(CLASSES)
    if attribute is None:
        return ()
    if not label.has_classes:
        hint = f"name a column of weights for the rows: {COLUMN}"
        what = "found without a label" if label.is_unsupervised else "a number"
        message = f"{label.column} is {what} and has no classes to weigh"
        errors.append(SemanticError(message, span=attribute.span, hint=hint))
        return ()
    if isinstance(attribute.written.value, ast.MapValue):
        return _read_weights(label, attribute.written.value, errors)
    return _balance_weights(label, column_statistics)


def refuse_classes(settings: TrainSettings, loss: str) -> SemanticError:
    """Return the error for class weights with a user's own loss, which does not take them."""
    return SemanticError(
        f"classes are weighed by losses of this language, and the loss is {loss}",
        span=settings.span(CLASSES),
        hint="weigh them in that function, or name a loss: loss = cross_entropy",
    )


def _read_weights(label: spec.Label, by_class: ast.MapValue, errors: list[SQLFlowError]) -> tuple[float, ...]:
    """Return the written weights by class, 1 for other classes."""
    weights = dict.fromkeys(map(_text, label.classes), 1.0)
    for name, value in by_class.items:
        weight = to_python(value)
        if name not in weights:
            hint = did_you_mean(name, weights, list_up_to=20)
            errors.append(SemanticError(f"{label.column} has no class {name}", span=value.span, hint=hint))
        elif isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            errors.append(SemanticError(f"the weight of {name} must be a number from 0", span=value.span))
        else:
            weights[name] = float(weight)
    if not any(weights.values()):
        errors.append(SemanticError("no class has a weight above 0", span=by_class.span))
    return tuple(weights.values())


def _balance_weights(label: spec.Label, column_statistics: ColumnStatistics) -> tuple[float, ...]:
    """Weight classes inversely to their frequency in the training rows, 1 on average; absent classes have weight 1."""
    counts = (
        dict(zip(column_statistics.counts.values, column_statistics.counts.counts, strict=True))
        if column_statistics.counts
        else {}
    )
    return tuple(
        round(column_statistics.rows / (len(counts) * counts[value]), 9) if value in counts else 1.0
        for value in label.classes
    )


def _text(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
