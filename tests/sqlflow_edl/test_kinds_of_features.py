"""Kinds of features and labels: each stands in each table of a phase that has a function for it."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

import pytest

from edl import features as fc
from edl.features import categories, encodings, kinds
from edl.features.labels import TARGETS
from edl.frameworks.networks import features as network_features
from edl.frameworks.onnx import columns as onnx_columns
from edl.spec import (
    Category,
    Concat,
    Cross,
    DatePart,
    Encoding,
    Feature,
    HashBucket,
    Label,
    ListOf,
    NGrams,
    NoLabel,
    OneHot,
    Periodic,
    RawLabel,
    RegressionLabel,
    Vector,
)
from edl.spec.categories import CategoryColumn
from sqlflow_edl.analysis import uncertainty
from sqlflow_edl.codegen import program
from sqlflow_edl.extensions.model_sql import columns as sql_columns
from sqlflow_edl.extensions.model_sql import features as sql_features
from sqlflow_edl.extensions.pmml import columns as pmml_columns
from sqlflow_edl.reports import text

FEATURES = {*get_args(Feature)}
CATEGORIES = {*get_args(Category)}
LABELS = {*get_args(Label)}
NUMBERS = {kind for kind in FEATURES if kind.array in fc.NUMBERS and not kind.is_for_trees}
DENSE = {kind for kind in FEATURES if kind.array in fc.NUMBERS}
ENCODINGS = {*get_args(Encoding)}


@pytest.mark.parametrize(
    ("name", "table", "wanted"),
    [
        ("edl.features.kinds.check_fields", kinds.check_fields.registry, FEATURES | CATEGORIES | {object}),
        ("edl.features.kinds.compute_values", kinds.compute_values.registry, DENSE | {OneHot, object}),
        ("edl.features.categories.ENCODERS", categories.ENCODERS, CATEGORIES),
        ("edl.features.encodings.TABLES", encodings.TABLES, ENCODINGS),
        ("edl.features.labels.TARGETS", TARGETS, LABELS - {NoLabel}),
        ("codegen.program.LABELS", program.LABELS, LABELS - {NoLabel, RawLabel}),
        ("reports.text.LABELS", text.LABELS, LABELS),
        ("analysis.uncertainty.WITHOUT_INTERVAL", uncertainty.WITHOUT_INTERVAL, LABELS - {RegressionLabel}),
        (
            "analysis.uncertainty.INSTEAD_OF_INTERVAL",
            uncertainty.INSTEAD_OF_INTERVAL,
            LABELS - {RegressionLabel},
        ),
    ],
)
def test_a_table_has_every_kind(name: str, table: Collection[type], wanted: set[type]) -> None:
    lacking = {kind for kind in table if not kind.__module__.startswith("tests")} ^ wanted
    assert not lacking, (
        f"{name} lacks {', '.join(sorted(kind.__name__ for kind in lacking))}, or has too many"
    )


@pytest.mark.parametrize(
    ("name", "table", "wanted", "without"),
    [
        ("edl.frameworks.networks.features.VALUES", network_features.VALUES, NUMBERS - ENCODINGS, {Vector}),
        (
            "edl.frameworks.onnx.columns.CODES",
            onnx_columns.CODES,
            CATEGORIES,
            {HashBucket, Cross, ListOf, NGrams, Concat},
        ),
        ("model_sql.features.VALUES", sql_features.VALUES, NUMBERS - ENCODINGS, {Vector, Periodic}),
        ("model_sql.columns.IDS", sql_columns.IDS, CATEGORIES, {ListOf, NGrams, Concat}),
        ("pmml.columns.IDS", pmml_columns.IDS, CATEGORIES, {HashBucket, Cross, ListOf, NGrams, Concat}),
    ],
)
def test_a_table_of_an_export_has_every_kind_but_those_that_cannot_be_exported(
    name: str, table: Collection[type], wanted: set[type], without: set[type]
) -> None:
    lacking = {*table} ^ (wanted - without)
    assert not lacking, (
        f"{name} lacks {', '.join(sorted(kind.__name__ for kind in lacking))}, or has too many"
    )


@pytest.mark.parametrize("kind", sorted(FEATURES | CATEGORIES, key=lambda kind: kind.__name__))
def test_a_kind_of_feature_has_a_constructor_for_programs(kind: type[Feature | Category]) -> None:
    functions = fc.__dict__.keys()
    assert {"month", "day"} <= functions if kind is DatePart else kind.__struct_config__.tag in functions


def test_categories_are_told_by_their_base() -> None:
    assert {kind for kind in FEATURES | CATEGORIES if issubclass(kind, CategoryColumn)} == CATEGORIES
