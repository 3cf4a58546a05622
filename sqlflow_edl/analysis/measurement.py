"""EVALUATE without a model: from the statement to a `Measurement` of predictions that stand in the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from edl import metrics
from edl.errors import SemanticError, Span, SQLFlowError, raise_all
from edl.spec import ClassLabel, Label, Query, RegressionLabel
from edl.spec.job import Report
from edl.spec.measurement import Measurement
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.query_errors import MissingLabelError
from sqlflow_edl.analysis.labels import check_type, resolve_metrics
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.settings.dictionary import Dictionary, Resolved
from sqlflow_edl.analysis.settings.measurement import (
    KIND,
    MEASUREMENT,
    PREDICTION,
    PROBABILITY,
    THRESHOLD,
    WEIGHT,
)
from sqlflow_edl.analysis.settings.uses import EVALUATE
from sqlflow_edl.syntax import ast

Kind = Literal["classification", "regression"]
Attributes = Mapping[str, Resolved]

METRICS = "validation.metrics"
_BOOLEANS = {"false": False, "true": True}
_EXAMPLE = "WITH evaluate.prediction = my_column"


def check(statement: ast.Statement) -> Attributes:
    """Return the attributes of the statement. Raises all errors that need no database, together."""
    errors: list[SQLFlowError] = []
    if not statement.select:
        hint = "write SELECT … FROM … before TO EVALUATE"
        errors.append(SemanticError("there is no SELECT to evaluate", span=statement.span, hint=hint))
    if not statement.labels:
        end = Span(statement.span.end - 1, statement.span.end)
        errors.append(MissingLabelError("the column of the true values", span=end))
    errors += (
        SemanticError("one label is compared at a time", span=one_label.span)
        for one_label in statement.labels[1:]
    )
    attributes = Dictionary(MEASUREMENT, {row.name: "EVALUATE of a model" for row in EVALUATE}).resolve(
        statement.attributes, errors, []
    )
    if not {PREDICTION, PROBABILITY} & {*attributes} and len(errors) == 0:
        errors.append(
            SemanticError(
                "the statement names no model and no predictions to evaluate",
                span=statement.span,
                hint=f"TO EVALUATE my_model, or TO EVALUATE {_EXAMPLE}",
            )
        )
    errors += _contradictions(attributes)
    raise_all(errors)
    return attributes


def _contradictions(attributes: Attributes) -> list[SQLFlowError]:
    """Return errors of attributes that do not go together."""
    errors: list[SQLFlowError] = []
    threshold, probability = attributes.get(THRESHOLD), attributes.get(PROBABILITY)
    if probability is not None and KIND in attributes and attributes[KIND].value == "regression":
        hint = "leave evaluate.kind or evaluate.probability out"
        errors.append(SemanticError("numbers have no probabilities", span=probability.key_span, hint=hint))
    if threshold is None:
        return errors
    if PREDICTION in attributes:
        wrong, hint = "the predicted classes are known", "leave evaluate.threshold or evaluate.prediction out"
    elif isinstance(threshold.value, str):
        wrong, hint = f"only a model has a threshold by {threshold.value}", "write a number from 0 to 1"
    elif probability is not None and _count(probability) > 2:
        wrong, hint = f"a threshold needs two classes, and there are {_count(probability)}", "leave it out"
    else:
        return errors
    return [*errors, SemanticError(wrong, span=threshold.span, hint=hint)]


def _count(probability: Resolved) -> int:
    """Return the number of classes that a written probability is of."""
    value = probability.written.value
    return len(value.items) if isinstance(value, ast.MapValue) else 2


def plan(statement: ast.Statement, query: Query, schema: Schema) -> Measurement:
    """Return the measurement of the statement. Raises all its errors together."""
    attributes = check(statement)
    return _Planner(statement, attributes, query, schema).measurement()


def measurement_notes(planned: Measurement, label: Label | None = None) -> tuple[str, ...]:
    """Return notes on what the statement left open. label: with the classes of the rows, once they are known."""
    sentences = []
    if planned.kind == "classification" and not planned.probabilities:
        without = [name for name in metrics.DEFAULTS["binary"] if _needs_probabilities(name)]
        if not {*without} & {*planned.metrics}:
            sentences.append(f"{', '.join(without)} need probabilities: {PROBABILITY} names their column")
    if label is not None and label.has_classes and len(planned.probabilities) == 1:
        first, second = label.classes
        sentences.append(
            f"{planned.probabilities[0]} is taken as the probability of {second}, and not of {first}"
        )
    return tuple(sentences)


def _needs_probabilities(name: str) -> bool:
    return not metrics.by_name(name, "binary").of_decision


class _Planner:
    """Planner of one statement; errors are collected."""

    def __init__(
        self, statement: ast.Statement, attributes: Attributes, query: Query, schema: Schema
    ) -> None:
        self._statement = statement
        self._found = attributes
        self._query = query
        self._schema = schema
        self._errors: list[SQLFlowError] = []

    def measurement(self) -> Measurement:
        label = self._resolve_query(self._statement.labels[0])
        prediction, weight = self._find_named_column(PREDICTION), self._find_named_column(WEIGHT)
        by_class = self._by_class()
        raise_all(self._errors)
        predicted = by_class | ({prediction: self._span(PREDICTION)} if prediction else {})
        if label in predicted:
            raise self._with_itself(label, predicted[label])
        compared = {label: self._statement.labels[0].span}
        if prediction:
            compared[prediction] = predicted[prediction]
        kind = self._kind(compared)
        for column, span in {**by_class, **({weight: self._span(WEIGHT)} if weight else {})}.items():
            self._check_number(column, span)
        classes, columns = self._in_order(label, by_class)
        names = self._metrics(kind, label)
        report = self._report(kind, classes)
        raise_all(self._errors)
        return Measurement(
            self._statement.text,
            self._query,
            kind,
            label,
            prediction,
            columns,
            classes,
            weight,
            names,
            report,
            self._found[THRESHOLD].value if THRESHOLD in self._found else None,  # type: ignore[arg-type]  # checked
            str(self._statement.into[0]) if self._statement.into else "",
        )

    # Columns -------------------------------------------------------------------------------------------------

    def _resolve_query(self, name: ast.Name) -> str:
        try:
            return self._schema.resolve(name)
        except SQLFlowError as error:
            self._errors.append(error)
            return ""

    def _find_named_column(self, attribute: str) -> str:
        """Return the column that an attribute names, empty without it."""
        resolved = self._found.get(attribute)
        return self._column(resolved.written.value) if resolved is not None else ""

    def _column(self, value: ast.Value) -> str:
        if isinstance(value, ast.Name):
            return self._resolve_query(value)
        text = str(value.value) if isinstance(value, ast.Constant) else ""
        return self._resolve_query(ast.Name((text,), text, value.span))

    def _by_class(self) -> dict[str, Span]:
        """Return the columns of probabilities with their places, in written order."""
        resolved = self._found.get(PROBABILITY)
        if resolved is None:
            return {}
        value = resolved.written.value
        items = [item for _, item in value.items] if isinstance(value, ast.MapValue) else [value]
        return {self._column(item): item.span for item in items}

    @staticmethod
    def _with_itself(label: str, span: Span) -> SemanticError:
        hint = "name the column of the predictions here, and that of the true values behind LABEL"
        return SemanticError(f"{label} would be compared with itself", span=span, hint=hint)

    def _span(self, attribute: str) -> Span:
        return self._found[attribute].span

    def _check_number(self, column: str, span: Span) -> None:
        kind = self._schema.type(column)
        if kind is not ColumnType.NUMBER:
            message = f"{column} is {kind.words}, and a probability or a weight is a number"
            self._errors.append(SemanticError(message, span=span))

    # Classes or numbers --------------------------------------------------------------------------------------

    def _kind(self, compared: Mapping[str, Span]) -> Kind:
        """Return the written kind, or the kind of the columns' types; add an error for a column of the other kind."""
        fractions = [name for name in compared if self._is_number(name) and not self._schema.is_integer(name)]
        named = PROBABILITY in self._found or not all(map(self._is_number, compared))
        kind: Kind = "classification" if named or not fractions else "regression"
        if KIND in self._found:
            kind = self._found[KIND].value  # type: ignore[assignment]  # of these choices
        for name, span in compared.items():
            fits = self._is_number(name) if kind == "regression" else name not in fractions
            if wrong := check_type(self._schema, name, None):
                wrong.span = span
                self._errors.append(wrong)
            elif not fits:
                self._errors.append(self._misfit(name, kind, span))
        return kind

    def _is_number(self, column: str) -> bool:
        return self._schema.type(column) is ColumnType.NUMBER

    def _misfit(self, column: str, kind: Kind, span: Span) -> SemanticError:
        if kind == "regression":
            return SemanticError(
                f"{column} is {self._schema.type(column).words}, and not a number", span=span
            )
        hint = f"select {expressions.round_expression(column, self._query.dialect)}"
        if PROBABILITY not in self._found:
            hint += ", or compare numbers: evaluate.kind = regression"
        return SemanticError(
            f"{column} holds fractional numbers, which cannot be classes", span=span, hint=hint
        )

    def _in_order(
        self, label: str, by_class: Mapping[str, Span]
    ) -> tuple[tuple[str | bool | int, ...], tuple[str, ...]]:
        """Return the written classes in their natural order, and their columns of probabilities."""
        resolved = self._found.get(PROBABILITY)
        if resolved is None or not isinstance(resolved.written.value, ast.MapValue):
            return (), tuple(by_class)
        names = [name for name, _ in resolved.written.value.items]
        classes = [self._class(label, name, resolved.span) for name in names]
        if len(by_class) < len(names) or len(set(classes)) < len(classes) or len(names) < 2:
            span = resolved.span
            hint = "{'no': p_no, 'yes': p_yes}"
            self._errors.append(
                SemanticError("each of the classes needs a column of its own", span=span, hint=hint)
            )
        raise_all(self._errors)
        pairs = sorted(zip(classes, by_class, strict=True), key=lambda pair: pair[0])
        return tuple(value for value, _ in pairs), tuple(column for _, column in pairs)

    def _class(self, label: str, name: str, span: Span) -> str | bool | int:
        """Return a class that is written as a key, in the type of the label."""
        kind = self._schema.type(label)
        try:
            if kind is ColumnType.BOOLEAN:
                return _BOOLEANS[name.casefold()]
            return int(name) if kind is ColumnType.NUMBER else name
        except (KeyError, ValueError):
            self._errors.append(
                SemanticError(f"{name} cannot be a value of {label}, which is {kind.words}", span=span)
            )
            return name

    # Figures -------------------------------------------------------------------------------------------------

    def _metrics(self, kind: Kind, label: str) -> tuple[str, ...]:
        """Return the written metrics, or all metrics that the columns allow; add errors for others."""
        some = ClassLabel(label, (0, 1)) if kind == "classification" else RegressionLabel(label, 0.0, 1.0)
        resolved = self._found.get(METRICS)
        span = resolved.span if resolved else None
        names = resolve_metrics(resolved.value if resolved else None, some, span, self._errors)
        if kind == "regression" or PROBABILITY in self._found:
            return names
        without = tuple(name for name in names if not _needs_probabilities(name))
        if resolved is None:
            return without
        self._errors += (
            SemanticError(
                f"{name} measures probabilities, and the statement names none",
                span=span,
                hint=f"WITH {PROBABILITY} = my_column names them",
            )
            for name in names
            if name not in without
        )
        return names

    def _report(self, kind: Kind, classes: tuple[object, ...]) -> Report:
        """Return the form of the result; add an error if the columns do not allow it."""
        resolved = self._found.get("evaluate.report")
        report: Report = resolved.value if resolved else "figures"  # type: ignore[assignment]  # of these choices
        wrong, hint = "", "leave evaluate.report out"
        if report != "figures" and kind == "regression":
            wrong = f"{report} needs a label with classes; this one has numbers"
        elif report == "roc_curve" and PROBABILITY not in self._found:
            wrong, hint = "a roc_curve is of probabilities", f"name their column: {PROBABILITY} = my_column"
        elif report == "roc_curve" and len(classes) > 2:
            wrong = f"roc_curve needs a label with two classes; this one has {len(classes)}"
        if wrong and resolved:
            self._errors.append(SemanticError(wrong, span=resolved.span, hint=hint))
        return report
