"""Weights of linear models with their standard errors and p-values: ML.ADVANCED_WEIGHTS of BigQuery ML.

The rows of the training query are read again, and the weights are those with the largest likelihood, by least squares
or by Newton's method. A category has a weight for each value but the most frequent one, as with
category_encoding_method = 'DUMMY_ENCODING'. A p-value is the probability of a weight that is as far from 0 by chance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edl.errors import SemanticError
from edl.features.arrays import numbers
from edl.spec import Feature, JobSpec, category_of
from edl.spec.column import sources
from sqlflow_edl.analysis.warm_start import signature
from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction
from sqlflow_edl.extensions.bigquery_ml.model_weights import INTERCEPT

Floats = npt.NDArray[np.float64]

_MOST_WEIGHTS = 1000  # BigQuery ML refuses more, too
_STEPS = 50  # of Newton's method
_LARGEST_LOGIT = 30.0
_SERIES = 200  # terms of a continued fraction


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Columns of numbers, (rows, inputs), and for each the column of the table and its value of a category or None."""

    names: list[tuple[str, str | None]]
    values: Floats


def explain_weights(function: ModelFunction) -> pa.Table:
    """Return a row for each weight: processed_input, category, weight, standard_error, p_value.

    Raises SemanticError for another model than a linear one of a number or of two classes, for one that weighs its rows
    or sees something else than its columns, and if the rows do not determine the weights.
    """
    trained = function.trained
    label = trained.label
    is_number = trained.model.name == "LinearRegressor" and not label.labels
    if not is_number and not (trained.model.name == "LinearClassifier" and label.is_binary):
        raise SemanticError(
            "ML.ADVANCED_WEIGHTS is for linear models of a number or of two classes",
            span=function.span,
            hint=f"write ML.GLOBAL_EXPLAIN(MODEL {function.call.model})",
        )
    _check_model(function, trained)
    rows = function.source.stream(function.training_query).read_all()
    rows = rows.filter(rows.column(label.column).is_valid())
    inputs = _inputs(function, rows, standardize=_standardizes(function))
    count = len(inputs.names) + 1
    if count > _MOST_WEIGHTS or rows.num_rows <= count:
        raise SemanticError(
            f"{rows.num_rows:,} rows are not enough for the errors of {count:,} weights, at most {_MOST_WEIGHTS:,}",
            span=function.span,
        )
    # Columns of one size: times in seconds beside shares of one would look like sums of others.
    shifts = inputs.values.mean(axis=0)
    scales = inputs.values.std(axis=0)
    scales[scales == 0] = 1.0
    design = np.column_stack([np.ones(rows.num_rows), (inputs.values - shifts) / scales])
    if np.linalg.matrix_rank(design) < count:
        raise SemanticError(
            "some columns are sums of others, so that the rows do not determine the weights",
            span=function.span,
            hint="train with fewer columns",
        )
    column = rows.column(label.column).combine_chunks()
    if is_number:
        weights, covariance = _least_squares(design, numbers(column, label.column))
        weights, errors = _rescale(weights, covariance, shifts, scales)
        freedom = rows.num_rows - count
        p_values = [_two_sided_t(ratio, freedom) for ratio in weights / errors]
    else:
        is_second = pc.equal(column, pa.scalar(label.classes[1]).cast(column.type))
        weights, covariance = _newton(design, is_second.to_numpy(zero_copy_only=False).astype(np.float64))
        weights, errors = _rescale(weights, covariance, shifts, scales)
        p_values = [math.erfc(abs(ratio) / math.sqrt(2)) for ratio in weights / errors]
    names = [(INTERCEPT, None), *inputs.names]
    columns = {
        "processed_input": pa.array([name for name, _ in names]),
        "category": pa.array([category for _, category in names], pa.string()),
        "weight": pa.array(weights),
        "standard_error": pa.array(errors),
        "p_value": pa.array(p_values),
    }
    order = [*range(1, count), 0]  # the intercept is the last one
    return pa.table(columns).take(pa.array(order))


def _standardizes(function: ModelFunction) -> bool:
    setting = function.find_setting("standardize")
    value = getattr(setting.value, "value", None) if setting else False
    if not isinstance(value, bool):
        raise SemanticError("standardize is TRUE or FALSE", span=setting.value.span if setting else None)
    return value


def _check_model(function: ModelFunction, trained: JobSpec) -> None:
    """Raise SemanticError if a fit of the columns would have other weights than the model for a reason of its own."""
    if trained.weights or trained.loss.params.get("class_weights"):
        raise SemanticError(
            "ML.ADVANCED_WEIGHTS counts each row once, and the model weighs its rows",
            span=function.span,
            hint=f"write ML.WEIGHTS(MODEL {function.call.model})",
        )


def _inputs(function: ModelFunction, rows: pa.Table, *, standardize: bool) -> _Inputs:
    """Return the inputs: numbers, NULL as their mean, and a flag for each value of a category but the most frequent.

    Raises SemanticError if the model sees something else than the numbers and categories of the table.
    """
    names: list[tuple[str, str | None]] = []
    values: list[Floats] = []
    for feature in function.trained.features:
        if feature.is_indicator:
            continue
        name = _find_column(feature, rows)
        if name is None:
            raise SemanticError(
                f"ML.ADVANCED_WEIGHTS fits numbers and categories, and the model sees {signature(feature)}",
                span=function.span,
                hint=f"write ML.WEIGHTS(MODEL {function.call.model})",
            )
        column = rows.column(name).combine_chunks()
        if feature.line is None or pa.types.is_boolean(column.type):
            for category, flags in _flags(column):
                names.append((name, category))
                values.append(flags)
            continue
        values_of_column = numbers(column, name)
        values_of_column = np.where(
            np.isfinite(values_of_column), values_of_column, np.nanmean(values_of_column)
        )
        if standardize and (deviation := values_of_column.std(ddof=1)):
            values_of_column = (values_of_column - values_of_column.mean()) / deviation
        names.append((name, None))
        values.append(values_of_column)
    return _Inputs(names, np.column_stack(values) if values else np.empty((rows.num_rows, 0)))


def _find_column(feature: Feature, rows: pa.Table) -> str | None:
    """Return the column that enters a model as a number or by its values, or None if a feature is something else."""
    [column, *others] = sources(feature)
    if others or not isinstance(column, str):
        return None
    kind = rows.schema.field(column).type
    if feature.line is not None:
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        return column if is_number or pa.types.is_boolean(kind) else None
    category = category_of(feature)
    return column if feature.array == "ids" and category.levels and not category.has_lists else None


def _flags(column: pa.Array) -> Iterator[tuple[str | None, Floats]]:
    texts = ["NULL" if value is None else str(value) for value in column.to_pylist()]
    counts = Counter(texts)
    usual = min(counts, key=lambda text: (-counts[text], text), default="")
    all_texts = np.array(texts, dtype=object)
    for category in sorted(counts.keys() - {usual}):
        yield category, (all_texts == category).astype(np.float64)


def _rescale(weights: Floats, covariance: Floats, shifts: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """Return weights and standard errors of inputs from these of (input - shift) / scale."""
    back = np.diag(np.append(1.0, 1 / scales))
    back[0, 1:] = -shifts / scales
    return back @ weights, np.sqrt(np.diag(back @ covariance @ back.T))


def _least_squares(design: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the weights with the least squared errors, and their covariance."""
    weights, *_ = np.linalg.lstsq(design, values, rcond=None)
    rows, inputs = design.shape
    variance = float(np.square(values - design @ weights).sum()) / (rows - inputs)
    covariance = variance * np.linalg.inv(design.T @ design)
    return np.asarray(weights, np.float64), np.asarray(covariance, np.float64)


def _newton(design: Floats, is_second: Floats) -> tuple[Floats, Floats]:
    """Return the weights of the logit with the largest likelihood, and their covariance.

    Of classes that a line separates, the weights grow without bounds; they end at a logit of 30.
    """
    weights = np.zeros(design.shape[1])
    information = np.eye(design.shape[1])
    for _ in range(_STEPS):
        share = 1 / (1 + np.exp(-np.clip(design @ weights, -_LARGEST_LOGIT, _LARGEST_LOGIT)))
        information = (design * (share * (1 - share) + 1e-12)[:, np.newaxis]).T @ design
        step = np.linalg.solve(information, design.T @ (is_second - share))
        if np.abs(design @ (weights + step)).max() > _LARGEST_LOGIT:
            break
        weights = weights + step
        if np.abs(step).max() < 1e-10 * (1 + np.abs(weights).max()):
            break
    return weights, np.asarray(np.linalg.inv(information))


def _two_sided_t(value: float, freedom: int) -> float:
    """Return the probability that Student's t is at least as far from 0."""
    if not math.isfinite(value):
        return 0.0
    return _incomplete_beta(freedom / (freedom + value * value), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (Numerical Recipes, 6.4)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(
        a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, _SERIES):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * fraction / a
