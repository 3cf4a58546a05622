"""Analysis of EVALUATE: from the statement and the model's JobSpec to a JobSpec."""

from __future__ import annotations

import msgspec

from edl import spec
from edl.errors import SemanticError, SQLFlowError, raise_all
from edl.models.archive import Archive
from sqlflow_edl.analysis import uncertainty
from sqlflow_edl.analysis.checks.query_errors import MissingColumnsError
from sqlflow_edl.analysis.inference.used_model import (
    check_use,
    cluster_of,
    columns,
    columns_read,
    spec_of,
    value_of,
)
from sqlflow_edl.analysis.labels import refuse_labels, resolve_metrics
from sqlflow_edl.analysis.rows import row_groups
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.settings.dictionary import Resolved
from sqlflow_edl.analysis.settings.measurement import MEASUREMENT
from sqlflow_edl.analysis.settings.uses import EVALUATE
from sqlflow_edl.syntax import ast

UNSEEN_ONLY = "validation.unseen_only"


def check_evaluation(statement: ast.Statement) -> tuple[ast.Name, dict[str, Resolved]]:
    """Return the model and attributes of EVALUATE. Raises errors that need no database."""
    without = {row.name: "EVALUATE without a model" for row in MEASUREMENT}
    return check_use(statement, statement.model, EVALUATE, [], without)


def unseen_only(statement: ast.Statement) -> Resolved | None:
    """Return the attribute that leaves out the rows that trained the model, or None."""
    attribute = check_evaluation(statement)[1].get(UNSEEN_ONLY)
    return attribute if attribute is not None and attribute.value else None


def evaluation(
    statement: ast.Statement, model: Archive, reference: str, query: spec.Query, schema: Schema
) -> spec.JobSpec:
    """Return the JobSpec of an EVALUATE statement, without its rows."""
    _, attributes = check_evaluation(statement)
    trained, errors = _with_known_anomalies(model.spec, statement, schema), list[SQLFlowError]()
    column = ""
    try:
        if trained.label.labels:
            trained = _with_labels(trained, trained.label, statement, schema)
        elif trained.label.is_unsupervised:
            errors.extend(refuse_labels(statement, reference))
        elif statement.labels:
            column = schema.resolve(statement.labels[0])
        else:
            column = _label_column(statement, schema, trained.label.column)
    except SQLFlowError as error:
        errors.append(error)
    needed = [name for name in columns_read(trained) if name != trained.label.column]
    renamed = columns(statement, schema, needed, errors, trained.query)
    names = trained.metrics
    if len(trained.label.quantiles) > 1:
        # the backtest of the training has no share of its own: it calibrates them
        names = (*names, "coverage")
    if "validation.metrics" in attributes:
        metrics_attribute = attributes["validation.metrics"]
        names = resolve_metrics(metrics_attribute.value, trained.label, metrics_attribute.span, errors)
        trained = _measured_by_name(trained)
    if trained.forecast is not None and column:
        renamed[trained.label.column] = column
    own_label = row_groups.evaluate_groups(trained.label, column, statement, schema, errors)
    report = _report(attributes.get("evaluate.report"), trained.label, errors)
    threshold = uncertainty.threshold(attributes.get("evaluate.threshold"), model, reference, errors)
    raise_all(errors)
    return msgspec.structs.replace(
        spec_of(trained, "evaluate", statement, reference, query, renamed, attributes),
        report=report,
        threshold=threshold,
        temperature=uncertainty.temperature(model),
        label=own_label,
        metrics=names,
        weights=_weights(trained, schema),
        output=spec.Output(str(statement.into[0]) if statement.into else ""),
        batch_size=value_of(attributes, "evaluate.batch_size", trained.batch_size),
        cluster=cluster_of(attributes, "evaluate"),
    )


def _with_labels(
    trained: spec.JobSpec, label: spec.Label, statement: ast.Statement, schema: Schema
) -> spec.JobSpec:
    """Return the JobSpec with the columns of the query that hold the labels, in their order.

    Raises SemanticError for another number of them.
    """
    label_names, parts = statement.labels, label.labels
    if label_names and len(label_names) != len(parts):
        raise SemanticError(
            f"the model predicts {len(parts)} labels, and LABEL names {len(label_names)}",
            span=label_names[-1].span,
            hint=f"name the columns that hold {label.column}, or leave LABEL out",
        )
    columns = (
        [schema.resolve(label_name) for label_name in label_names]
        if label_names
        else [_label_column(statement, schema, one_label.column) for one_label in parts]
    )
    again = [label_name for place, label_name in enumerate(label_names) if columns[place] in columns[:place]]
    if again:
        raise SemanticError(
            f"{again[0].text} is a label twice",
            span=again[0].span,
            hint=f"name the columns that hold {label.column}, each once",
        )
    renamed = tuple(
        msgspec.structs.replace(one_label, column=column)
        for one_label, column in zip(parts, columns, strict=True)
    )
    names = tuple(
        f"{renamed_label.column}{name.removeprefix(one_label.column)}"
        for one_label, renamed_label in zip(parts, renamed, strict=True)
        for name in trained.metrics
        if name.rpartition(".")[0] == one_label.column
    )
    return msgspec.structs.replace(trained, label=spec.SeveralLabels(renamed), metrics=names)


def _with_known_anomalies(trained: spec.JobSpec, statement: ast.Statement, schema: Schema) -> spec.JobSpec:
    """Return the JobSpec of a model of anomalies as a classifier's, if LABEL names the known anomalies."""
    if not (trained.label.tells_anomalies and statement.labels):
        return trained
    label = statement.labels[0]
    column = schema.resolve(label)
    is_boolean = schema.type(column) is ColumnType.BOOLEAN
    if not (is_boolean or schema.is_integer(column)):
        raise SemanticError(
            f"known anomalies are a boolean, or 0 and 1, and {column} is {schema.type(column).words}",
            span=label.span,
            hint="select a comparison with it: SELECT *, kind = 'fraud' AS known",
        )
    classes = (False, True) if is_boolean else (0, 1)
    return msgspec.structs.replace(
        trained,
        label=spec.ClassLabel(column, classes),
        loss=spec.Component("cross_entropy"),
        metrics=("auc", "precision", "recall", "f1"),
    )


def _report(attribute: Resolved | None, label: spec.Label, errors: list[SQLFlowError]) -> spec.job.Report:
    """Return the kind of report; add an error if the label does not allow it."""
    report: spec.job.Report = attribute.value if attribute else "figures"  # type: ignore[assignment]  # of these choices
    least = {"figures": 0, "confusion_matrix": 2, "roc_curve": 2}[report]
    classes = len(label.classes)
    if attribute and (classes < least or (report == "roc_curve" and classes > 2)):
        needs = "two classes" if report == "roc_curve" else "classes"
        has = f"{label.column} has {classes}" if classes else f"{label.column} has none"
        if label.labels:
            has = f"{label.column} are several labels"
        errors.append(
            SemanticError(
                f"{report} needs a label with {needs}; {has}",
                span=attribute.span,
                hint="write evaluate.report = confusion_matrix"
                if classes > 2
                else "leave evaluate.report out",
            )
        )
    return report


def _measured_by_name(trained: spec.JobSpec) -> spec.JobSpec:
    """Return the spec without the metrics of the model's module."""
    if trained.own is None:
        return trained
    functions = tuple(name for name in trained.own.functions if name != "eval_metrics_fn")
    return msgspec.structs.replace(trained, own=msgspec.structs.replace(trained.own, functions=functions))


def _weights(trained: spec.JobSpec, schema: Schema) -> spec.Weights | None:
    """Return the column that weighted the training rows, if the query has it."""
    weights_of_training = trained.weights
    column_here = schema.find(weights_of_training.column) if weights_of_training else None
    return (
        spec.Weights(column_here, weights_of_training.mean) if weights_of_training and column_here else None
    )


def _label_column(statement: ast.Statement, schema: Schema, trained: str) -> str:
    if column_here := schema.find(trained):
        return column_here
    raise MissingColumnsError(
        f"the query lacks the label {trained}",
        {trained: ""},
        is_label=True,
        span=statement.select_span,
        hint="select it, or name the column that holds it: LABEL column",
    )
