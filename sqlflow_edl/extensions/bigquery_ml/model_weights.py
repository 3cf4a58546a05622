"""Weights of linear models and centres of clusters, in the columns of ML.WEIGHTS and ML.CENTROIDS of BigQuery ML.

A number that a model sees standardised or normalised is taken back to the unit of its column, and the intercept with
it: a sum of w (x - shift) / scale is one of (w / scale) x, less w shift / scale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from edl.errors import JobError, SemanticError
from edl.features import Features
from edl.frameworks.networks.network import Floats
from edl.frameworks.networks.stored import network
from edl.models.archive import Archive
from edl.spec import (
    Feature,
    JobSpec,
    category_of,
    is_category,
    label_offset,
    source_columns,
    width,
)
from sqlflow_edl.analysis.warm_start import signature
from sqlflow_edl.reports import table
from sqlflow_edl.reports.features import levels

INTERCEPT, UNSEEN = "__INTERCEPT__", "__UNSEEN__"
_LINEAR = ("LinearRegressor", "LinearClassifier")
_FACTORS = "MatrixFactorization"
GLOBAL_INTERCEPT = "global__INTERCEPT__"
_CENTRES = "distances.centres"
_COMPONENTS = "components.components.weight"


@dataclass(frozen=True, slots=True)
class _WeightsOfFeature:
    """Feature of a model with its numbers: (width, outputs) weights, or (width, clusters) of centres."""

    name: str
    feature: Feature
    values: Floats
    moments: tuple[float, float] | None  # mean and deviation of the number in the training rows, where known


def weights(archive: Archive, *, standardize: bool) -> pa.RecordBatchReader:
    """Return a row for each class and feature of a linear model, and for its intercept.

    standardize: of numbers with mean 0 and deviation 1; NULL where these are not known. Raises SemanticError for
    another model.
    """
    spec = archive.spec
    if spec.model.name == _FACTORS:
        return _factors(archive)
    if spec.model.name not in _LINEAR or spec.label.labels:
        raise SemanticError(
            "only a linear model of one label has a weight for each column",
            hint="write ML.GLOBAL_EXPLAIN(MODEL my_model), or ML.FEATURE_IMPORTANCE(MODEL my_model) of trees",
        )
    try:
        stored = network(spec, archive.weights())
    except JobError as error:
        raise SemanticError(error.message) from error
    rows: dict[Feature, Floats] = {}
    first = 0
    for block in stored.blocks:
        of_block = stored.output.weight[first : first + block.entry.width] * stored.std
        rows |= _split(block.entry.features, of_block if block.table is None else block.table @ of_block)
        first += block.entry.width
    parts = _parts(archive, rows)
    classes = () if spec.label.is_binary else spec.label.classes
    types = {"processed_input": pa.string(), "weight": pa.float64(), "category_weights": _pairs("weight")}
    if classes:
        types["class_label"] = pa.string()
    intercepts = stored.output.bias * stored.std + stored.mean + label_offset(spec.label)
    listed = (
        (*row, *(str(name) for name in classes[place : place + 1]))
        for place, intercept in enumerate(intercepts)
        for row in _of_output(parts, place, float(intercept), standardize=standardize)
    )
    return table.make_typed_reader(types, listed)


def _of_output(
    parts: Sequence[_WeightsOfFeature], place: int, intercept: float, *, standardize: bool
) -> Iterator[tuple[str, float | None, list[dict[str, object]] | None]]:
    """Yield name, weight and weights of categories of each feature for one output, and its intercept."""
    for part in parts:
        values = part.values[:, place]
        if categories := _categories(part):
            yield part.name, None, _list_categories(categories, values, "weight")
            continue
        shift, scale = _line(part.feature)
        weight = float(values[0]) / scale if scale else 0.0
        intercept -= weight * shift
        if not standardize:
            yield part.name, weight, None
        elif part.moments is None:
            yield part.name, None, None
        else:
            mean, deviation = part.moments
            intercept += weight * mean
            yield part.name, weight * deviation, None
    yield INTERCEPT, intercept, None


def centroids(archive: Archive, *, standardize: bool) -> pa.RecordBatchReader:
    """Return a row for each cluster, from 1, and feature of KMeans: a number, or the share of each category.

    standardize: numbers less their mean, divided by their deviation; NULL where these are not known. Raises
    SemanticError for another model.
    """
    stored = centres_of(archive)
    if stored is None:
        raise SemanticError(
            "only KMeans has centres in the columns of its rows", hint="write DESCRIBE MODEL my_model"
        )

    def show(part: _WeightsOfFeature, value: float) -> float | None:
        shift, scale = _line(part.feature)
        number = value * scale + shift
        return _standardized_weight(number, part.moments) if standardize else number

    return _list_vectors(archive, stored, "centroid_id", 1, show)


def components(archive: Archive) -> pa.RecordBatchReader:
    """Return a row for each principal component, from 0, and feature: its coordinate, or one for each category."""
    vectors = np.asarray(archive.weights()[_COMPONENTS], np.float64)
    return _list_vectors(archive, vectors, "principal_component_id", 0, lambda _, value: value)


def _list_vectors(
    archive: Archive,
    vectors: Floats,
    key: str,
    first_number: int,
    show: Callable[[_WeightsOfFeature, float], float | None],
) -> pa.RecordBatchReader:
    """Return a row for each vector (vectors, width) and feature. show: returns the shown value of a number."""
    columns = vectors.T
    rows: dict[Feature, Floats] = {}
    first = 0
    for entry in Features(*archive.spec.features).entries:
        rows |= _split(entry.features, columns[first : first + entry.width])
        first += entry.width
    parts = _parts(archive, rows)

    def list_rows() -> Iterator[tuple[object, ...]]:
        for place in range(len(vectors)):
            for part in parts:
                values = part.values[:, place]
                if categories := _categories(part):
                    shown = _list_categories(categories, values, "value")
                    yield place + first_number, part.name, None, shown
                else:
                    yield place + first_number, part.name, show(part, float(values[0])), None

    types = {
        key: pa.int64(),
        "feature": pa.string(),
        "numerical_value": pa.float64(),
        "categorical_value": _pairs("value"),
    }
    return table.make_typed_reader(types, list_rows())


def _factors(archive: Archive) -> pa.RecordBatchReader:
    """Return a row for each user and item of a factorization, and for the mean of the ratings."""
    spec, weights_by_name = archive.spec, archive.weights()
    types = {
        "processed_input": pa.string(),
        "feature": pa.string(),
        "factor_weights": pa.list_(pa.struct({"factor": pa.int64(), "weight": pa.float64()})),
        "intercept": pa.float64(),
    }

    def list_rows() -> Iterator[tuple[object, ...]]:
        mean = 0.0 if spec.model.params.get("feedback_type") == "implicit" else spec.label.mean
        yield GLOBAL_INTERCEPT, None, None, mean + label_offset(spec.label)
        for name, values, factors, intercepts in factors_of(spec, weights_by_name):
            for value, vector, intercept in zip(values, factors, intercepts, strict=True):
                listed = [
                    {"factor": place, "weight": weight} for place, weight in enumerate(vector.tolist(), 1)
                ]
                yield name, value, listed, float(intercept)

    return table.make_typed_reader(types, list_rows())


def factors_of(
    spec: JobSpec, weights_by_name: Mapping[str, Floats]
) -> Iterator[tuple[str, list[str], Floats, Floats]]:
    """Yield column, values, factors (values, factors) and intercepts of the users, then of the items.

    Ratings are the product of both vectors and both intercepts, plus the mean.
    """
    is_implicit = spec.model.params.get("feedback_type") == "implicit"
    scale = 1.0 if is_implicit else spec.label.std
    for feature, name in zip(spec.features, ("factors.users.weight", "factors.items.weight"), strict=True):
        [column] = source_columns(feature)
        stored = np.asarray(weights_by_name[name], np.float64)
        category: Any = category_of(feature)  # a model of factors has nothing else
        texts = levels(category, np.arange(len(stored))).to_pylist()
        known = [place for place, text in enumerate(texts) if text is not None]
        vectors = stored[known, :-1] * np.sqrt(scale)
        intercepts = np.zeros(len(known)) if is_implicit else stored[known, -1] * scale
        yield column, [str(texts[place]) for place in known], vectors, intercepts


def centres_of(archive: Archive) -> Floats | None:
    """Return the centres of KMeans as (clusters, width) of features, or None of another model."""
    if archive.spec.model.name != "KMeans":
        return None
    return np.asarray(archive.weights()[_CENTRES], np.float64)


def _split(features: Sequence[Feature], values: Floats) -> Iterator[tuple[Feature, Floats]]:
    """Yield the features of an entry with their rows of the values; a category has one for each id."""
    first = 0
    for feature in features:
        size = len(values) if feature.dim else width(feature)
        yield feature, values[first : first + size]
        first += size


def _parts(archive: Archive, rows: Mapping[Feature, Floats]) -> list[_WeightsOfFeature]:
    """Return the features in the order of the JobSpec, with their names.

    A number or a category is named as its column. Other forms, and all features of a column that several features read,
    are named as ML.TRANSFORM names them.
    """
    summaries = archive.fitting.columns if archive.fitting else {}
    features = [candidate for candidate in dict.fromkeys(archive.spec.features) if candidate in rows]
    readers = Counter(
        name for candidate in features for name in source_columns(candidate) if not candidate.is_indicator
    )
    parts = []
    for feature in features:
        [column, *others] = source_columns(feature)
        category = category_of(feature)
        is_vocabulary = feature.array == "ids" and bool(category.levels)
        is_line = feature.line is not None and not feature.part  # of its column
        is_plain = (is_vocabulary or is_line) and not others and readers[column] == 1
        name = column if is_plain and _reads_column(feature) else signature(feature)
        if feature.is_indicator:
            name = f"{column} IS NULL"
        moments = None
        if feature.line is not None and feature.moments is not None:
            moments = feature.moments
        elif is_line and _reads_column(feature) and (of := summaries.get(column)):
            moments = None if of.mean is None or of.std is None else (of.mean, of.std)
        parts.append(_WeightsOfFeature(name, feature, rows[feature], moments))
    return parts


def _reads_column(feature: Feature) -> bool:
    """Return True if the feature reads a column of the table, and no computed one."""
    category = category_of(feature) if feature.array == "ids" else feature
    return isinstance(getattr(category, "column", None), str)


def _line(feature: Feature) -> tuple[float, float]:
    """Return shift and scale of a feature that is (x - shift) / scale, 0 if it is constant; of others 0 and 1."""
    return feature.line or (0.0, 1.0)


def _standardized_weight(number: float, moments: tuple[float, float] | None) -> float | None:
    if moments is None:
        return None
    mean, deviation = moments
    return (number - mean) / deviation if deviation else 0.0


def _categories(part: _WeightsOfFeature) -> list[str | None]:
    """Return the names of a feature's values, none for a number; NULL stands for missing, and for unseen if these have
    no id of their own.
    """
    category = category_of(part.feature)
    if part.feature.array == "ids" and is_category(category):
        texts = levels(category, np.arange(len(part.values)))
        names = [None if value is None else str(value) for value in texts.to_pylist()]
        return [*names[:-1], UNSEEN] if category.has_other else names
    return [str(place) for place in range(1, len(part.values) + 1)] if len(part.values) > 1 else []


def _list_categories(categories: Sequence[str | None], values: Floats, key: str) -> list[dict[str, object]]:
    return [{"category": name, key: float(value)} for name, value in zip(categories, values, strict=True)]


def _pairs(key: str) -> pa.DataType:
    return pa.list_(pa.struct({"category": pa.string(), key: pa.float64()}))
