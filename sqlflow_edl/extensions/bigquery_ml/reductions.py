"""Functions of BigQuery ML on principal components and autoencoders: ML.PRINCIPAL_COMPONENTS and the like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.errors import SemanticError
from edl.spec.extra_outputs import ERRORS
from sqlflow_edl.extensions.bigquery_ml.factorization import embed_pairs
from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction, with_columns
from sqlflow_edl.extensions.bigquery_ml.model_weights import components
from sqlflow_edl.syntax.ast import Attribute, Constant
from sqlflow_edl.syntax.model_functions import CALLS_GOOGLE

_PREFIX = "ml_generate_embedding"


def list_components(function: ModelFunction) -> pa.Table:
    """Return a row for each principal component, from 0, and feature."""
    _check_components(function)
    with function.open(function.call.model) as archive:
        return components(archive).read_all()


def describe_components(function: ModelFunction) -> pa.Table:
    """Return the variance of the rows along each principal component, and its share of the whole."""
    _check_components(function)
    with function.open(function.call.model) as archive:
        weights = archive.weights()
    variances, total = (
        np.asarray(weights[f"components.{name}"], np.float64) for name in ("variances", "total")
    )
    shares = variances / total[0] if total[0] else np.zeros(len(variances))
    return pa.table(
        {
            "principal_component_id": np.arange(len(variances)),
            "eigenvalue": variances,
            "explained_variance_ratio": shares,
            "cumulative_explained_variance_ratio": np.cumsum(shares),
        }
    )


def total_variance(function: ModelFunction) -> pa.Table:
    """Return the share of the variance of the training rows that all components explain."""
    shares = describe_components(function).column("explained_variance_ratio")
    return pa.table({"total_explained_variance_ratio": [pc.sum(shares).as_py()]})


def _check_components(function: ModelFunction) -> None:
    if function.trained.model.name != "PCA":
        raise SemanticError(
            f"{function.call.model} has no principal components",
            span=function.span,
            hint="train one with model_type = 'pca'",
        )


def measure_rows(function: ModelFunction) -> pa.Table:
    """Return the rows with the errors of the features that a reduction restores; squared logarithms are NULL.

    Standardised features are negative for half of the rows, where BigQuery's logarithm is not explained.
    """
    if not function.trained.label.dimensions:
        raise SemanticError(
            f"{function.call.model} restores no columns",
            span=function.span,
            hint="train one with model_type = 'autoencoder'",
        )
    setting = Attribute("predict.extra_outputs", Constant(ERRORS, function.span), function.span)
    statement = replace(function.statement, attributes=(*function.statement.attributes, setting))
    rows, computed = replace(function, statement=statement).predicted(training=False)
    texts = pc.split_pattern(rows.column(computed[-1]).combine_chunks(), ",")
    squared, absolute = (pc.cast(pc.list_element(texts, place), pa.float64()) for place in (0, 1))
    added = {
        "mean_absolute_error": absolute,
        "mean_squared_error": squared,
        "mean_squared_log_error": pa.nulls(rows.num_rows, pa.float64()),
    }
    return with_columns(rows.drop_columns(list(computed)), added)


def embed_rows(function: ModelFunction) -> pa.Table:
    """Return the rows with their numbers in a reduction as one list, or the vectors of all users and items."""
    if function.trained.model.name == "MatrixFactorization":
        return embed_pairs(function)
    count = function.trained.label.dimensions
    if not count:
        raise SemanticError(
            f"{function.call.model} makes no embeddings of rows by itself: {CALLS_GOOGLE}",
            span=function.span,
            hint="embeddings are made by models of the types pca, autoencoder and matrix_factorization",
        )
    if not function.call.query:
        raise SemanticError(
            "ML.GENERATE_EMBEDDING needs a query behind the model",
            span=function.span,
            hint=f"write ML.GENERATE_EMBEDDING(MODEL {function.call.model}, (SELECT …))",
        )
    rows, computed = function.predicted(training=False)
    numbers = np.column_stack([rows.column(name).to_numpy() for name in computed[:count]])
    flat = pa.array(numbers.reshape(-1), from_pandas=True)
    offsets = pa.array(np.arange(rows.num_rows + 1, dtype=np.int32) * count)
    added = {
        f"{_PREFIX}_result": pa.ListArray.from_arrays(offsets, flat),
        f"{_PREFIX}_status": pa.array([""] * rows.num_rows),
    }
    return with_columns(rows.drop_columns(list(computed)), added)
