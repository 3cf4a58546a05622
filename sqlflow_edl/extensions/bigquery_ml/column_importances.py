"""Importance of the columns of a model: ML.GLOBAL_EXPLAIN of BigQuery ML."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from edl.errors import Advice, SemanticError
from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction
from sqlflow_edl.syntax.ast import Attribute, Constant

_EXPLAINED_ROWS = 1000


def explain_columns(function: ModelFunction) -> pa.Table:
    """Return the mean size of the Shapley values of each column, over the training rows or a query.

    class_level_explain: over the rows of each predicted class.
    """
    by_class = function.find_setting("class_level_explain")
    if by_class and getattr(by_class.value, "value", None) is not False:
        if not function.trained.label.has_classes or getattr(by_class.value, "value", None) is not True:
            raise SemanticError(
                "there is no explanation for each class",
                span=by_class.value.span,
                hint=Advice("write FALSE, or leave it out: the explanation is of all rows", "FALSE"),
            )
        return _explain_classes(function)
    level = Attribute("explain.level", Constant("model", function.span), function.span)
    rows, _ = _explaining(function, level).predicted(training=not function.call.query)
    return pa.table({"feature": rows.column("feature"), "attribution": rows.column("importance")})


def _explaining(function: ModelFunction, level: Attribute) -> ModelFunction:
    """Return the function with an EXPLAIN statement of this level."""
    explains = replace(
        function.statement,
        kind="explain",
        model=function.call.model,
        using=None,
        attributes=(*function.statement.attributes, level),
    )
    return replace(function, statement=explains)


def _explain_classes(function: ModelFunction) -> pa.Table:
    """Return the mean size of the Shapley values in the rows of each predicted class, the largest first."""
    level = Attribute("explain.level", Constant("rows", function.span), function.span)
    select = function.statement.select or function.training_query
    some = f"SELECT * FROM (\n{select}\n) AS explained LIMIT {_EXPLAINED_ROWS}"
    rows, computed = _explaining(function, level).of_query(some)
    names = function.trained.columns
    sizes = np.abs(np.column_stack([rows.column(name).to_numpy() for name in computed[-len(names) :]]))
    predicted = rows.column(computed[0]).to_pylist()
    listed: list[tuple[object, str, float]] = []
    for label in function.trained.label.classes:
        is_class = np.array([value == label for value in predicted])
        if is_class.any():
            means = map(float, np.nanmean(sizes[is_class], axis=0))
            pairs = sorted(zip(names, means, strict=True), key=lambda pair: -pair[1])
            listed += ((label, *pair) for pair in pairs)
    labels, features, values = zip(*listed, strict=True) if listed else ((), (), ())
    columns = {
        "class_label": pa.array(labels),
        "feature": pa.array(features),
        "attribution": pa.array(values),
    }
    return pa.table(columns)
