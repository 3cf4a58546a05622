"""Choice of the label: its kind and classes, the model that suits it, its metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec import UNSET

from edl import metrics, spec
from edl.errors import Advice, SemanticError, Span, SQLFlowError, did_you_mean
from edl.features.labels import MOST_RELEVANCE
from sqlflow_edl.analysis import catalog, expressions, forecasts
from sqlflow_edl.analysis.checks import text_expressions
from sqlflow_edl.analysis.checks.query_errors import (
    MissingLabelError,
    NeedlessLabelError,
    NoRowsError,
    TextLabelError,
)
from sqlflow_edl.analysis.checks.text_readings import NumberReading
from sqlflow_edl.analysis.checks.warning import FEWEST_ROWS
from sqlflow_edl.analysis.losses import LOSSES
from sqlflow_edl.analysis.models import transform
from sqlflow_edl.analysis.models.base import Model
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.settings.values import Setting
from sqlflow_edl.analysis.statistics import precision
from sqlflow_edl.analysis.statistics.accumulators import round_to_scale
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

WITHOUT_LABEL = ("clustering", "anomaly detection", "dimensionality reduction", transform.TASK)  # tasks
CHOSEN = " is chosen: "  # in the note on the model of a family
MOST_CLASSES = 1000  # more are hardly intended
MOST_AUTO_CLASSES = 20  # distinct integers that a model family treats as classes

Values = tuple[str, ...] | tuple[int, ...] | tuple[bool, ...] | None  # None: too many to count

_JOIN = re.compile(r"\b(JOIN|HAVING|LIMIT|EXCEPT|INTERSECT)\b", re.IGNORECASE)
_WHERE = re.compile(r"\bWHERE\b.*", re.IGNORECASE | re.DOTALL)


def label_wants(model: Model | None) -> Want:
    """Return the statistics of the label column that `choose` needs."""
    if model is None or model.task is None:
        return Want.MOMENTS | Want.COUNTS
    return Want.COUNTS if model.task == "classification" else Want.MOMENTS


def check_type(schema: Schema, label: str, model: Model | None) -> SQLFlowError | None:
    """Return the error that the column's type alone causes, or None."""
    kind = schema.type(label)
    if kind is ColumnType.OTHER:
        return schema.unusable(label, None)
    if kind.is_temporal:
        return SemanticError(
            f"{label} is {kind.words}, and models predict numbers and classes",
            hint=f"select a number instead, such as the seconds: {expressions.seconds(label, schema.dialect)}",
        )
    if model is not None and model.task == "ranking" and kind not in (ColumnType.NUMBER, ColumnType.BOOLEAN):
        return SemanticError(
            f"{label} is {kind.words}, and {model.name} learns the order of a relevance, a whole number from 0",
            hint="select a number, such as 0 for no click, 1 for a click and 2 for a purchase",
        )
    if model is not None and model.task == "forecasting" and kind is not ColumnType.NUMBER:
        return SemanticError(
            f"{label} is {kind.words}, and {model.name} predicts numbers",
            hint="name a column of numbers, or count the rows of each time: COUNT(*) … GROUP BY",
        )
    if model is not None and model.task == "regression" and kind is ColumnType.TEXT:
        return TextLabelError(
            f"{label} is a text, and {model.name} predicts numbers",
            label,
            span=None,
            hint=_predicts_texts(model.name, label, schema.dialect),
        )
    return None


def _predicts_texts(model: str, label: str, dialect: str) -> Advice:
    """Return the hint of a text that a model of numbers is to predict."""
    classifier = model.replace("Regressor", "Classifier")
    number = text_expressions.number(label, NumberReading(), dialect)
    return Advice(
        f"a {classifier} predicts texts; if its texts are numbers, select {number} "
        f"AS {expressions.name(label, dialect)}",
        classifier,
    )


def label_spans(
    statement: ast.Statement, model: Model | None, schema: Schema, errors: list[SQLFlowError]
) -> dict[str, Span]:
    """Return the spans of the labels by their columns; empty without a label and after an error."""
    spans: dict[str, Span] = {}
    for name in read_labels(statement, model, errors):
        try:
            column = schema.resolve(name)
        except SQLFlowError as error:
            errors.append(error)
            return {}
        if column in spans:
            errors.append(SemanticError(f"{column} is a label twice", span=name.span, hint="leave one out"))
        spans[column] = name.span
    return spans


def read_labels(
    statement: ast.Statement, model: Model | None, errors: list[SQLFlowError]
) -> tuple[ast.Name, ...]:
    """Return the labels that the statement names; add an error if it names none.

    A model that finds clusters or anomalies has none.
    """
    if model is not None and model.task in WITHOUT_LABEL:
        errors.extend(refuse_labels(statement, model.name))
        return ()
    if not statement.labels:
        named = statement.model.span if statement.model else None
        if named is None or all(
            error.span != named for error in errors
        ):  # an unknown model may have no label
            errors.append(MissingLabelError(span=Span(statement.span.end - 1, statement.span.end)))
    return statement.labels


def refuse_labels(statement: ast.Statement, name: str) -> Iterator[SQLFlowError]:
    """Yield an error if the statement names a label. name: of the model, which has none."""
    if statement.labels:
        yield NeedlessLabelError(
            f"{name} is trained without a label",
            span=statement.labels[0].span,
            hint="leave LABEL out, and out of the SELECT what is no feature; a DNNClassifier predicts a label",
        )


@dataclass(frozen=True, slots=True)
class WrittenLabel:
    """Label of a statement before its rows are known. group: column of the groups of a ranking. series: of a forecast.

    notes: to which the choice of a model is added.
    """

    column: str
    span: Span | None
    statement: ast.Statement
    settings: TrainSettings
    schema: Schema
    notes: list[str]
    group: str = ""
    series: spec.Forecast | None = None


def choose(
    label: WrittenLabel, column_statistics: ColumnStatistics, classes: Values
) -> tuple[Model, spec.Label]:
    """Return the model and the typed label. Raises SemanticError if the rows cannot teach it."""
    if column_statistics.rows == 0:
        raise no_rows(label.statement)
    if column_statistics.nulls == column_statistics.rows:
        raise _fail(label, f"{label.column} is NULL in every training row; there is nothing to learn")
    if column_statistics.nulls:
        has_nan = label.schema.has_nan(label.column)
        lacking = "NULL, NaN or infinite" if has_nan else "NULL"
        raise _fail(
            label,
            f"{label.column} is {lacking} in {column_statistics.nulls:,} of {column_statistics.rows:,} training rows",
            f"add WHERE {expressions.has_value(label.column, label.schema.dialect, has_nan=has_nan)} to the SELECT, or "
            "leave them out by WITH train.on_bad_row = skip",
        )
    model = label.settings.model
    if model is None or model.task is None:
        model = _suit_model(label, classes)
    if model.task == "regression":
        if column_statistics.min != column_statistics.max:
            return model, _number(label, column_statistics)
        if not model.takes_constant_label(label.settings.resolved):
            raise _constant_label_error(label, column_statistics.min)
        return model, spec.RegressionLabel(label.column, column_statistics.mean)
    if model.task == "forecasting":
        centre = label.series.centre if label.series else UNSET
        return model, spec.ForecastLabel(label.column, forecasts.quantiles(label.settings), centre)
    if model.task == "ranking":
        return model, _relevance(label, column_statistics)
    return model, spec.ClassLabel(label.column, _classes(label, model, classes, column_statistics.rows))


def _number(label: WrittenLabel, column_statistics: ColumnStatistics) -> spec.RegressionLabel:
    """Return the label of a regression, with a centre if float32 rounds it much and the loss allows one."""
    allows_centre = label.settings.loss not in precision.LOGARITHMIC and not label.settings.own_function(
        "loss"
    )
    if not allows_centre or not precision.is_coarse(
        column_statistics.min, column_statistics.max, column_statistics.std
    ):
        return spec.RegressionLabel(label.column, column_statistics.mean, column_statistics.std)
    centre = precision.round_mean(column_statistics.mean, column_statistics.std)
    return spec.RegressionLabel(
        label.column,
        round_to_scale(column_statistics.mean - centre, column_statistics.std),
        column_statistics.std,
        centre,
    )


def _relevance(label: WrittenLabel, column_statistics: ColumnStatistics) -> spec.RankingLabel:
    """Return the label of a ranking. Raises SemanticError if the column holds no relevance."""
    most = 1 if label.settings.loss == "mean_average_precision" else MOST_RELEVANCE
    if column_statistics.min < 0 or column_statistics.max > most:
        wrong = column_statistics.min if column_statistics.min < 0 else column_statistics.max
        raise _fail(
            label,
            f"{label.column} is {wrong:g} in a training row, and the relevance of a row is a whole number from 0 to "
            f"{most}",
            "0 is irrelevant; each number above it doubles the gain"
            if most > 1
            else "select whether the row is relevant, or leave the loss out",
        )
    if column_statistics.max == 0:
        raise _fail(label, f"{label.column} is 0 in every training row; nothing is relevant")
    return spec.RankingLabel(label.column, label.group)


def has_classes(settings: TrainSettings, schema: Schema, label: str, classes: Values) -> bool:
    """Return True if the label has classes rather than being a number.

    The model's task decides, else a written loss, else the metric of a search; otherwise few distinct values are
    classes.
    """
    model = settings.model
    if model is not None and model.task is not None:
        return model.task == "classification"
    if settings.loss:
        return LOSSES.entries[settings.loss].task == "classification"
    if settings.task and schema.is_integer(label):
        return settings.task == "classification"
    few = classes is not None and len(classes) <= (settings.choice.example.most_classes or MOST_AUTO_CLASSES)
    return schema.type(label) is not ColumnType.NUMBER or (few and schema.is_integer(label))


def _check_fractions(label: WrittenLabel, classes: Values) -> None:
    """Raise SemanticError for a loss of classes, such as reg:logistic, on shares or other numbers with fractions."""
    schema, column = label.schema, label.column
    few = classes is not None and len(classes) <= MOST_AUTO_CLASSES
    if few or schema.type(column) is not ColumnType.NUMBER or schema.is_integer(column):
        return
    raise SemanticError(
        f"the loss {label.settings.loss} is for classes, and {column} is a number with many different fractions",
        span=label.settings.span("loss"),
        hint=Advice(
            "write mean_squared_error, whose predictions may be below 0 or above 1", "mean_squared_error"
        ),
    )


def _suit_model(label: WrittenLabel, classes: Values) -> Model:
    """Return the model for this label: of a family, or the user's own with its task."""
    choice = label.settings.choice
    is_class = has_classes(label.settings, label.schema, label.column, classes)
    if choice.entry is not None:
        return replace(choice.entry, task="classification" if is_class else "regression")
    if is_class:
        _check_fractions(label, classes)
    name = choice.family + ("Classifier" if is_class else "Regressor")
    counted = "different values" if classes is None else f"{len(classes):,} different values"
    label.notes.append(
        f"{name}{CHOSEN}{label.column} is {label.schema.type(label.column).words} with {counted}"
    )
    return catalog.MODELS.entries[name]


def _classes(label: WrittenLabel, model: Model, classes: Values, rows: int) -> tuple[str | bool | int, ...]:
    """Return the classes. rows: the training rows."""
    is_number = "Classifier" in model.name and label.schema.type(label.column) is ColumnType.NUMBER
    other = f"train a {model.name.replace('Classifier', 'Regressor')}" if is_number else None
    if classes is None or len(classes) > MOST_CLASSES:
        message = f"{label.column} has more than {MOST_CLASSES:,} different values, too many for classes"
        raise _fail(label, message, other)
    if len(classes) >= rows >= FEWEST_ROWS:
        message = (
            f"{label.column} has {len(classes):,} different values, and there are {rows:,} training rows"
        )
        hint = other or "name a column whose values repeat: each is a class to learn"
        if label.schema.type(label.column) is ColumnType.TEXT:
            raise TextLabelError(message, label.column, span=label.span, hint=hint)
        raise _fail(label, message, hint)
    count = label.settings.get("model.n_classes")
    if isinstance(count, int) and count != len(classes):
        range_of_classes = range(count)
        if all(type(value) is int and value in range_of_classes for value in classes):
            return tuple(range_of_classes)
        raise SemanticError(
            f"model.n_classes = {count}, but {label.column} has {len(classes):,} different values",
            span=label.settings.span("model.n_classes"),
            hint="leave it out: classes are counted",
        )
    if len(classes) < 2:
        only = f"is always {classes[0]!r}" if classes else "has no value"
        raise _fail(label, f"{label.column} {only}; there is nothing to learn", _condition(label.statement))
    if model.most_classes and len(classes) > model.most_classes:
        raise _fail(
            label,
            f"{model.name} predicts {model.most_classes} classes, and {label.column} has {len(classes):,}",
            "train a DNNClassifier or a DNNLinearCombinedClassifier",
        )
    return classes


def no_rows(statement: ast.Statement) -> SemanticError:
    """Return the error of a query without rows."""
    hint = _condition(statement)
    if hint is None and not _JOIN.search(statement.select):
        hint = "its table is empty"
    return NoRowsError(span=statement.select_span, hint=hint)


def _condition(statement: ast.Statement) -> str | None:
    """Return the hint to look at the condition of the query, if it has one."""
    match = _WHERE.search(statement.select)
    return f"look at the condition: {' '.join(match[0].split())[:80]}" if match else None


def _constant_label_error(label: WrittenLabel, value: float) -> SemanticError:
    if abs(value) < 2**53:
        return _fail(label, f"{label.column} is {value:g} in every training row; there is nothing to learn")
    name, near = expressions.name(label.column, label.schema.dialect), int(math.nextafter(value, 0))
    return _fail(
        label,
        f"{label.column} is near {value:.0f} in every training row, and float64, in which it is learned, cannot tell "
        f"numbers apart there that differ by less than {math.ulp(value):g}",
        f"select {name} - {near} AS {name}",
    )


def _fail(label: WrittenLabel, message: str, hint: str | None = None) -> SemanticError:
    return SemanticError(message, span=label.span, hint=hint)


def choose_without_label(
    settings: TrainSettings, statement: ast.Statement, rows: spec.Rows
) -> tuple[Model, spec.Label]:
    """Return a model without a label, and what it predicts. Raises SemanticError if there are too few rows."""
    model = settings.choice.example
    if model.task == transform.TASK:
        if not rows.training:
            raise no_rows(statement)
        return model, spec.NoLabel()
    if model.task == "anomaly detection":
        if rows.training < 2:
            raise SemanticError("the query yields no rows to compare", span=statement.select_span)
        return model, spec.AnomalyLabel()
    if model.task == "dimensionality reduction":
        if rows.training < 2:
            raise SemanticError("the query yields fewer than two rows", span=statement.select_span)
        return model, spec.ReductionLabel(1, model.name)  # `finish` of the model counts the numbers
    number = int(catalog.parameters(model, settings.resolved)["n_clusters"])  # type: ignore[arg-type]  # an integer
    if rows.training < number:
        raise SemanticError(
            f"{rows.training:,} training rows cannot make {number:,} clusters",
            span=settings.span("model.n_clusters") or statement.select_span,
            hint="write a smaller model.n_clusters, or select more rows",
        )
    return model, spec.ClusterLabel(number)


def metric_names(settings: TrainSettings, label: spec.Label, errors: list[SQLFlowError]) -> tuple[str, ...]:
    """Return the canonical names of the metrics to report."""
    attribute = settings.resolved.get("validation.metrics")
    return resolve_metrics(
        attribute.value if attribute else None, label, settings.span("validation.metrics"), errors
    )


def resolve_metrics(
    names_given: Setting, label: spec.Label, span: Span | None, errors: list[SQLFlowError]
) -> tuple[str, ...]:
    """Return canonical names of the written metrics, or of the label kind's metrics if none is written."""
    if label.labels:
        return _metrics_of_each(names_given, label, span, errors)
    kind = metrics.kind_of(label)
    names: list[str] = []
    for name in names_given if isinstance(names_given, tuple) else metrics.DEFAULTS[kind]:
        try:
            names.append(metrics.by_name(str(name), kind).name)
        except SemanticError as error:
            error.span = span
            errors.append(error)
    return tuple(dict.fromkeys(names))


def _metrics_of_each(
    names_given: Setting, label: spec.Label, span: Span | None, errors: list[SQLFlowError]
) -> tuple[str, ...]:
    """Return the names `label.metric` of the written metrics, or of the usual ones of each label.

    A metric is written with the name of a label, or is measured of all labels that it suits.
    """
    if not isinstance(names_given, tuple):
        return tuple(
            f"{one_label.column}.{name}"
            for one_label in label.labels
            for name in metrics.DEFAULTS[metrics.kind_of(one_label)]
        )
    names: list[str] = []
    for name in map(str, names_given):
        try:
            names += _metrics_named(name, label)
        except SemanticError as error:
            error.span = span
            errors.append(error)
    return tuple(dict.fromkeys(names))


def _metrics_named(name: str, label: spec.Label) -> list[str]:
    """Return the full names of a written metric. Raises SemanticError if there is none, or no such label."""
    column, _, metric = name.rpartition(".")
    some = [
        one_label
        for one_label in label.labels
        if not column or one_label.column.casefold() == column.casefold()
    ]
    if not some:
        label_columns = [one_label.column for one_label in label.labels]
        raise SemanticError(f"the model has no label {column}", hint=did_you_mean(column, label_columns))
    names, wrong = [], None
    for one_label in some:
        try:
            names.append(f"{one_label.column}.{metrics.by_name(metric, metrics.kind_of(one_label)).name}")
        except SemanticError as error:
            wrong = error
    if not names and wrong is not None:
        raise wrong
    return names
