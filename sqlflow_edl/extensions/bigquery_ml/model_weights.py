"""Weights of linear models and centres of clusters, in the columns of ML.WEIGHTS and ML.CENTROIDS of BigQuery ML.

A number that a model sees standardised or normalised is taken back to the unit of its column, and the intercept with
it: a sum of w (x - shift) / scale is one of (w / scale) x, less w shift / scale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from edl.errors import JobError, SemanticError
from edl.features import Features
from edl.frameworks.networks.network import Floats
from edl.frameworks.networks.stored import network
from edl.models.archive import Archive
from edl.spec import (
    Feature,
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
_CENTRES = "distances.centres"


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
    centres = stored.T
    rows: dict[Feature, Floats] = {}
    first = 0
    for entry in Features(*archive.spec.features).entries:
        rows |= _split(entry.features, centres[first : first + entry.width])
        first += entry.width
    parts = _parts(archive, rows)

    def of_clusters() -> Iterator[tuple[object, ...]]:
        for place in range(centres.shape[1]):
            for part in parts:
                values = part.values[:, place]
                if categories := _categories(part):
                    yield place + 1, part.name, None, _list_categories(categories, values, "value")
                    continue
                shift, scale = _line(part.feature)
                number = float(values[0]) * scale + shift
                shown = _standardized_weight(number, part.moments) if standardize else number
                yield place + 1, part.name, shown, None

    types = {
        "centroid_id": pa.int64(),
        "feature": pa.string(),
        "numerical_value": pa.float64(),
        "categorical_value": _pairs("value"),
    }
    return table.make_typed_reader(types, of_clusters())


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
