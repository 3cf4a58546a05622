"""Analysis of PREDICT: from the statement and the model's JobSpec to a JobSpec."""

from __future__ import annotations

import re

import msgspec

from edl import spec
from edl.data.names import fit_name, quote_part
from edl.errors import SemanticError, Span, SQLFlowError, raise_all
from edl.evaluation.prediction import predicted_columns, results_of
from edl.features.labels import target
from edl.models.archive import Archive
from sqlflow_edl.analysis import extra_outputs, uncertainty
from sqlflow_edl.analysis.inference.used_model import (
    check_use,
    cluster_of,
    columns,
    columns_read,
    spec_of,
    value_of,
)
from sqlflow_edl.analysis.models import transform
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.analysis.settings.uses import PREDICT
from sqlflow_edl.syntax import ast
from sqlflow_edl.syntax.dialects import dialect_named

_PIECES = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^\s."`]+')  # of a dotted name as it is written


def check_prediction(statement: ast.Statement) -> tuple[ast.Name, dict[str, Resolved]]:
    """Return the model and attributes of PREDICT. Raises errors that need no database."""
    errors: list[SQLFlowError] = []
    if statement.columns:
        errors.append(
            SemanticError(
                "PREDICT takes no COLUMN: the model knows its columns",
                span=statement.columns[0].span,
                hint="leave it out",
            )
        )
    if statement.append and not statement.target:
        errors.append(
            SemanticError(
                "APPEND needs a table to add the rows to",
                span=statement.append.span,
                hint="name it behind PREDICT: TO PREDICT my_table USING my_model APPEND",
            )
        )
    return check_use(statement, statement.using, PREDICT, errors)


def prediction(
    statement: ast.Statement, model: Archive, reference: str, query: spec.Query, schema: Schema
) -> spec.JobSpec:
    """Return the JobSpec of a PREDICT statement, without its rows."""
    _, attributes = check_prediction(statement)
    trained, errors = model.spec, list[SQLFlowError]()
    renamed = columns(statement, schema, columns_read(trained), errors, trained.query)
    interval = uncertainty.interval(attributes.get("predict.interval"), model, reference, renamed, errors)
    threshold = uncertainty.threshold(attributes.get("predict.threshold"), model, reference, errors)
    probabilities = uncertainty.probabilities(attributes.get("predict.probabilities"), model, errors)
    extra, among_them = extra_outputs.written_outputs(
        attributes.get("predict.extra_outputs"), model, reference, errors
    )
    probabilities = among_them or probabilities
    report = _rows_or_report(attributes.get("predict.report"), statement, model, reference, errors)
    raise_all(errors)
    several = bool(trained.label.labels)
    usual = "" if several else trained.label.column
    table, column = _target(statement.target, statement.prefix + usual, query.dialect)
    if several and column != statement.prefix:
        column += "_"  # before the name of each label
    if table and statement.target and fit_name(column, scheme := query.source.partition(":")[0]) != column:
        raise SemanticError(
            f"{column} cannot name a column of {scheme}",
            span=statement.target.span,
            hint="name the column that is predicted behind the table: TO PREDICT my_table.my_column",
        )
    predicted = {name.casefold() for name in predicted_columns(trained.label, column)}
    keep = tuple(name for name in schema.names if name.casefold() not in predicted)
    return msgspec.structs.replace(
        spec_of(trained, "predict", statement, reference, query, renamed, attributes),
        weights=None,
        output=spec.Output(table, column, keep, probabilities, extra),
        report=report,
        interval=interval,
        threshold=threshold,
        temperature=uncertainty.temperature(model),
        batch_size=value_of(attributes, "predict.batch_size", trained.batch_size),
        cluster=cluster_of(attributes, "predict"),
    )


def _rows_or_report(
    attribute: Resolved | None,
    statement: ast.Statement,
    model: Archive,
    reference: str,
    errors: list[SQLFlowError],
) -> spec.job.Report:
    """Return the kind of report of PREDICT; add an error if the model has no statistics or features for it."""
    if attribute is None or attribute.value == "rows":
        return "figures"
    if attribute.value == "features":
        span = attribute.span
        if statement.target:
            message, hint = (
                "features are a result set",
                "leave the table out; sqlflow run -o FILE writes the rows",
            )
            errors.append(SemanticError(message, span=statement.target.span, hint=hint))
        if model.spec.forecast or not model.spec.features:
            why = "of series before each row" if model.spec.forecast else "made by its own program"
            errors.append(SemanticError(f"the features of {reference} are {why}", span=span))
        return "features"
    if model.fitting is None:
        errors.append(without_statistics(reference, attribute.span))
    return "drift"


def without_statistics(reference: str, span: Span | None = None) -> SemanticError:
    """Make the error for a model that no statement has trained."""
    return SemanticError(
        f"{reference} keeps no statistics of its training rows to compare with",
        span=span,
        hint="models that TRAIN has made have them",
    )


def prediction_in_memory(model: Archive, reference: str) -> spec.JobSpec:
    """Return the JobSpec of a PREDICT over rows in memory, which names no query and keeps none of their columns."""
    trained = model.spec
    transform.check_predicts(trained, reference)
    if trained.forecast is not None:
        raise SemanticError(
            f"{reference} forecasts from the last rows of each series, which it reads in a query",
            hint=f"write SELECT … TO PREDICT my_table USING {reference}",
        )
    return msgspec.structs.replace(
        trained,
        kind="predict",
        validation=None,
        weights=None,
        search=None,
        output=spec.Output(column="" if trained.label.labels else trained.label.column),
        trained_model=reference,
        device="cpu",
        threshold=model.threshold,
        temperature=uncertainty.temperature(model),
    )


def _target(target: ast.Name | None, label: str, dialect: str) -> tuple[str, str]:
    """Return table and column: the last part of a dotted target is the column, a single name is a table."""
    if target is None:
        return "", label
    parts, tables = target.parts, target.parts
    if dialect_named(dialect).small_names:
        pieces = list(zip(parts, _PIECES.findall(target.text), strict=True))
        parts = tuple(part if piece[0] in '"`' else part.lower() for part, piece in pieces)
        tables = tuple(quote_part(part) if piece[0] in '"`' else part for part, piece in pieces)
    if len(parts) == 1:
        return tables[0], label
    return ".".join(tables[:-1]), parts[-1]


def taken_name_notes(planned: spec.JobSpec) -> tuple[str, ...]:
    """Return a note on columns of the query with the names of added ones, such as probabilities of another model."""
    if planned.kind != "predict":
        return ()
    own_target, alone = target(planned.label), msgspec.structs.replace(planned.output, keep=())
    added = results_of(planned, own_target).names
    plain_names = results_of(msgspec.structs.replace(planned, output=alone), own_target).names
    taken = [(before, name) for before, name in zip(plain_names, added, strict=True) if before != name]
    if not taken:
        return ()
    before, name = taken[0]
    more = f", and {len(taken) - 1} more" if len(taken) > 1 else ""
    return (f"{before} is a column of the query; the model's is {name}{more}",)
