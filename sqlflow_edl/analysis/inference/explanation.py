"""Analysis of EXPLAIN: from the statement and the model's JobSpec to a JobSpec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean, raise_all
from edl.models.archive import Archive
from sqlflow_edl.analysis import uncertainty
from sqlflow_edl.analysis.inference.used_model import (
    check_use,
    cluster_of,
    columns,
    columns_read,
    has_input_gradients,
    spec_of,
    value_of,
)
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.analysis.settings.uses import EXPLAIN
from sqlflow_edl.syntax import ast

# Names of explainers in SQLFlow and the shap package.
EXPLAINERS = {
    name.casefold(): name
    for name in (
        "DeepExplainer",
        "ExactExplainer",
        "GradientExplainer",
        "KernelExplainer",
        "PermutationExplainer",
        "SamplingExplainer",
        "TreeExplainer",
        "XGBoostExplainer",
    )
}

EXPECTED_GRADIENTS: Literal["expected_gradients"] = "expected_gradients"
GRADIENT_SAMPLES = 200  # of expected gradients: as many background rows as a model keeps
LEAST_SAMPLES = 4
WALKED = 3200  # samples times columns, above which a row is compared with fewer samples
WALKED_BY_MODELS = 300  # the same of an ensemble, for its importances: samples times columns times models
SAMPLED_ROWS, LEAST_ROWS = (
    1000,
    200,
)  # over which the importance for a model is the mean; of large ensembles fewer


def check_explanation(statement: ast.Statement) -> tuple[ast.Name, dict[str, Resolved]]:
    """Return the model and attributes of EXPLAIN. Raises errors that need no database."""
    errors: list[SQLFlowError] = []
    if statement.using is not None and str(statement.using).casefold() not in EXPLAINERS:
        errors.append(
            SemanticError(
                f"there is no explainer {statement.using}",
                span=statement.using.span,
                hint=did_you_mean(str(statement.using), sorted(EXPLAINERS.values()), list_up_to=0)
                or "leave USING out: columns are explained by their Shapley values, whatever the model is",
            )
        )
    return check_use(statement, statement.model, EXPLAIN, errors)


def explanation(
    statement: ast.Statement, model: Archive, reference: str, query: spec.Query, schema: Schema
) -> spec.JobSpec:
    """Return the JobSpec of an EXPLAIN statement, without its rows."""
    _, attributes = check_explanation(statement)
    trained, errors = model.spec, list[SQLFlowError]()
    renamed = columns(statement, schema, columns_read(trained), errors, trained.query)
    if trained.label.labels:
        first = trained.label.labels[0].column
        errors.append(
            SemanticError(
                f"{reference} predicts {trained.label.column}, and EXPLAIN is of one predicted number or class",
                span=statement.span,
                hint=f"train a model of {first} alone to explain it: LABEL {first}",
            )
        )
    if trained.label.is_unsupervised:
        column = trained.label.column
        what = "clusters" if trained.label.clusters else "anomalies"
        what = "numbers without a label" if trained.label.dimensions else what
        errors.append(
            SemanticError(
                f"{reference} finds {what}, and EXPLAIN is of predicted numbers and classes",
                span=statement.span,
                hint=f"write SELECT * FROM ML.PRINCIPAL_COMPONENTS(MODEL {reference.partition('@')[0]})"
                if trained.model.name == "PCA"
                else f"predict into a table, and compare the means of its columns: GROUP BY {column}",
            )
        )
    method: spec.job.Method = msgspec.UNSET
    if "explain.method" in attributes and attributes["explain.method"].value == EXPECTED_GRADIENTS:
        method = EXPECTED_GRADIENTS
        errors += _check_gradients(trained, reference, attributes["explain.method"].span)
    raise_all(errors)
    table = str(statement.into[0]) if statement.into else ""
    of_rows = attributes["explain.level"].value == "rows" if "explain.level" in attributes else bool(table)
    predicted = statement.prefix + trained.label.column
    keep = tuple(name for name in schema.names if name.casefold() != predicted.casefold()) if of_rows else ()
    return msgspec.structs.replace(
        spec_of(trained, "explain", statement, reference, query, renamed, attributes),
        weights=None,
        metrics=(),
        temperature=uncertainty.temperature(model),
        explanation=spec.Explanation(
            "rows" if of_rows else "model",
            value_of(attributes, "explain.samples", default_samples(trained, of_rows=of_rows, method=method)),
            _background(model, attributes),
            msgspec.UNSET
            if of_rows or trained.forecast is not None  # a sample has no whole series
            else value_of(attributes, "explain.rows", sampled_rows(trained)) or msgspec.UNSET,
            method,
        ),
        output=spec.Output(table, predicted, keep),
        batch_size=value_of(attributes, "explain.batch_size", trained.batch_size),
        cluster=cluster_of(attributes, "explain"),
    )


def _check_gradients(trained: spec.JobSpec, reference: str, span: Span) -> Iterator[SQLFlowError]:
    """Yield an error if expected gradients do not explain the model."""
    if has_input_gradients(trained):
        return
    what = "a model of trees" if trained.framework in spec.TREES else "no network of the compiler"
    what = what if trained.forecast is None else "a forecast"
    yield SemanticError(
        f"expected gradients explain a single network, and {reference} is {what}",
        span=span,
        hint="leave explain.method out: any model is explained by Shapley values, trees by exact ones",
    )


def one_row_explanation(
    statement: ast.Statement, planned: spec.JobSpec, trained: spec.JobSpec
) -> spec.JobSpec | None:
    """Return the JobSpec that explains the only row of a query itself, or None if the statement says otherwise.

    It keeps the columns that the model reads.
    """
    keys = {attribute.key.casefold() for attribute in statement.attributes}
    explanation = planned.explanation
    if explanation is None or planned.rows.total != 1 or planned.forecast is not None:
        return None
    if "explain.level" in keys or planned.output.name:
        return None
    samples = explanation.samples
    if "explain.samples" not in keys:
        samples = default_samples(trained, of_rows=True, method=explanation.method)
    of_row = msgspec.structs.replace(explanation, level="rows", samples=samples, rows=msgspec.UNSET)
    keep = tuple(name for name in planned.columns if name.casefold() != planned.output.column.casefold())
    output = msgspec.structs.replace(planned.output, keep=keep)
    return msgspec.structs.replace(planned, explanation=of_row, output=output)


def _background(model: Archive, attributes: Mapping[str, Resolved]) -> Literal["query"] | msgspec.UnsetType:
    """Return whether rows are compared with rows of the query instead of the rows that the model keeps."""
    asks_for_query = "explain.background" in attributes and attributes["explain.background"].value == "query"
    if model.spec.framework in spec.TREES:
        return msgspec.UNSET
    return "query" if asks_for_query or not model.has_background else msgspec.UNSET


def default_samples(trained: spec.JobSpec, *, of_rows: bool, method: spec.job.Method = msgspec.UNSET) -> int:
    """Return the background rows that each row is compared with where nothing is written.

    The predictions of a row grow with samples times columns, and each is slower the more columns the model has. The
    importance for an ensemble is a mean over many rows, so that each row needs fewer.
    """
    if method:
        return GRADIENT_SAMPLES
    columns, most = max(len(trained.columns), 1), WALKED
    if trained.members and not of_rows:
        columns, most = columns * _models(trained), WALKED_BY_MODELS
    return min(max(most // columns, LEAST_SAMPLES), spec.Explanation().samples)


def sampled_rows(trained: spec.JobSpec) -> int:
    """Return the rows over which the importance for a model is the mean where nothing is written."""
    if not trained.members:
        return SAMPLED_ROWS
    predictions = LEAST_SAMPLES * len(trained.columns) * _models(trained)
    return min(SAMPLED_ROWS, max(LEAST_ROWS, SAMPLED_ROWS * WALKED_BY_MODELS // max(predictions, 1)))


def _models(trained: spec.JobSpec) -> int:
    """Return the number of models of an ensemble."""
    return sum(member.folds for member in trained.members)
