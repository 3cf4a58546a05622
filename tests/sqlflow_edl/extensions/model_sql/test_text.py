"""The text of a query, also for databases that cannot run here, and the parts of models that have none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pytest

from edl import spec
from edl.errors import SemanticError
from edl.frameworks.trees.forest import Forest, Nodes
from edl.models.archive import Archive, read_archive
from sqlflow_edl.extensions.model_sql import TARGETS, QueryOptions, model_query
from tests.edl.models.conftest import SPEC, write

CITY = spec.Vocabulary("ci ty", ("O'slo", "b\\"))
SCHEMA = {
    "amount": "double",
    "ci ty": "string",
    "day": "date32[day]",
    "seen": "timestamp[us, tz=UTC]",
    "woke": "time64[us]",
    "is_new": "bool",
    "shop": "int64",
}
CLASSES = spec.ClassLabel("kind", ("x", 'y"', "z"))


def archive(folder: Path, weights: Mapping[str, np.ndarray] | None = None, **changes: Any) -> Archive:
    """A model with the weights, by default with one hidden layer of two units and the weights 1/8, 2/8, …"""
    fields = tuple(spec.Field(name, kind) for name, kind in SCHEMA.items())
    defaults: dict[str, Any] = {
        "query": msgspec.structs.replace(SPEC.query, schema=fields),
        "framework": "torch",
        "model": spec.Component("DNNClassifier", {"hidden_units": (2,), "activation": "relu"}),
        "inputs": {"features": FEATURES},
        "label": CLASSES,
        "loss": spec.Component("cross_entropy"),
        "metrics": ("accuracy",),
        "optimizer": spec.Component("adam", {"learning_rate": 0.01}),
    }
    made = msgspec.structs.replace(SPEC, **{**defaults, **changes})
    width = sum(map(spec.width, made.features))
    units = made.model.params.get("hidden_units", (2,))
    weights = weights or {
        "hidden.0.weight": eighths(units[0], width),
        "hidden.0.bias": eighths(units[0]),
        "output.weight": eighths(made.label.outputs, units[0]),
        "output.bias": eighths(made.label.outputs),
    }
    return read_archive(write(folder / "m.zip", spec=made, weights=weights))


FEATURES: tuple[spec.Feature, ...] = (
    spec.Standardize("amount", 10.0, 2.0, 3.0),
    spec.PiecewiseLinear("amount", (0.0, 1.0, 5.0), True),
    spec.OneHot(CITY),
    spec.OneHot(spec.DatePart("day", "weekday")),
    spec.Numeric("seen", 1.5e9),
    spec.Numeric("is_new", 0.5),
)


def eighths(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1) / 8


def forest() -> Forest:
    """A tree of a threshold and of a set, with a missing value to each side, and a tree of one leaf."""
    nodes = Nodes(
        column=np.array([0, 1, 0, 0, 0, 0]),
        threshold=np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.0]),
        first=np.array([1, 3, 2, 3, 4, 5]),
        missing_first=np.array([True, False, False, False, False, False]),
        value=np.array([0.0, 0.0, 0.25, -0.5, 1.0, 0.125]),
        sets={1: np.array([1, 2])},
    )
    return Forest(nodes, np.array([0, 5]), np.array([0, 0]), np.array([0.5]), inclusive=False, doubles=False)


def no_forest() -> Forest:
    raise AssertionError("the model has no trees")


def trees(folder: Path) -> Archive:
    features = (spec.Raw("amount"), spec.Codes(CITY))
    return archive(
        folder,
        framework="xgboost",
        model=spec.Component("BoostedTreesClassifier", {}),
        inputs={"features": features},
        label=spec.ClassLabel("is_large", (False, True)),
    )


@pytest.mark.parametrize("dialect", TARGETS)
def test_the_text_is_the_golden_one(
    dialect: str, tmp_path: Path, golden: Callable[[str, bytes], None]
) -> None:
    inputs = FEATURES if dialect != "maxcompute" else (*FEATURES[:4], FEATURES[5])
    network = model_query(
        archive(tmp_path, inputs={"features": inputs}),
        "shop.m@1",
        QueryOptions(dialect, "shop.rows", ("id", "na me"), "shop.kinds"),
        no_forest,
    )
    of_trees = model_query(trees(tmp_path), "trees@2", QueryOptions(dialect, "rows"), forest)
    golden(f"model_sql/network_{dialect}.sql", network.encode())
    golden(f"model_sql/trees_{dialect}.sql", of_trees.encode())


def test_a_query_may_stand_for_the_table_and_its_names_do_not_clash(tmp_path: Path) -> None:
    connection = duckdb.connect()
    select = 'SELECT amount, city AS "ci ty" FROM trees WHERE amount > 1'
    query = model_query(trees(tmp_path), "m", QueryOptions("duckdb", select, ("amount",)), forest)
    connection.execute(
        "CREATE TABLE trees AS SELECT * FROM (VALUES (2.0, 'b\\'), (3.0, NULL), (0.0, 'b\\')) AS t(amount, city);"
        f"CREATE VIEW given AS {query}"
    )
    found = connection.sql("FROM given ORDER BY amount").fetchall()
    assert [row[:2] for row in found] == [(2.0, True), (3.0, True)]


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        (
            spec.OneHot(spec.HashBucket("ci ty", 9)),
            "HASH of column ci ty has no exact form in SQL of mysql, but of duckdb and postgres",
        ),
        (
            spec.OneHot(spec.Cross(("shop", "ci ty"), 9)),
            "CROSS of column shop and ci ty has no exact form in SQL of mysql",
        ),
        (spec.Periodic("amount", 0.0, 1.0, 4), "PERIODIC of column amount has no form in SQL"),
        (
            spec.OneHot(spec.Vocabulary("day", ("2026-01-01",))),
            "VOCABULARIZE of column day of type date32[day]",
        ),
        (spec.Vector("ci ty", (0.0, 1.0)), "DENSE of column ci ty has no form in SQL"),
    ],
)
def test_a_feature_without_a_form_is_refused_by_name(
    feature: spec.Feature, words: str, tmp_path: Path
) -> None:
    model = archive(tmp_path, inputs={"features": (feature,)})
    if isinstance(feature, spec.Periodic):
        weights = {f"features.periodic_4.{part}": eighths(1, 4) for part in ("frequencies", "weight", "bias")}
        write(tmp_path / "m.zip", spec=model.spec, weights={**model.weights(), **weights})
        model = read_archive(tmp_path / "m.zip")
    with pytest.raises(SemanticError, match=re.escape(words)) as caught:
        model_query(model, "m", QueryOptions("mysql", "t"), no_forest)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"model": spec.Component("DNNClassifier", {"hidden_units": (2_000,)})},
            "the network is too large for SQL",
        ),
        (
            {"model": spec.Component("DNNClassifier", {"hidden_units": (2,), "activation": "gelu"})},
            "the activation gelu has no function in SQL",
        ),
        ({"framework": "ensemble", "inputs": {}}, "an ensemble has no form in SQL"),
        ({"model": spec.Component("DeepFMClassifier", {})}, "not a built-in dense network"),
        ({"edited": True}, "its program was edited"),
    ],
)
def test_a_model_without_a_form_is_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(SemanticError, match=re.escape(words)):
        model_query(archive(tmp_path, **changes), "m", QueryOptions("duckdb", "t"), no_forest)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (QueryOptions("oracle", "t"), "cannot be written in the SQL of oracle"),
        (QueryOptions("duckdb", "a b c"), "'a b c' is not the name of a table in duckdb"),
        (QueryOptions("duckdb", "t", ("a", "A")), "--keep names the column 'A' twice"),
        (
            QueryOptions("maxcompute", "t"),
            "column seen is of type timestamp[us, tz=UTC], whose seconds have no form",
        ),
    ],
)
def test_what_is_wanted_is_checked(wanted: QueryOptions, words: str, tmp_path: Path) -> None:
    with pytest.raises(SemanticError, match=re.escape(words)):
        model_query(archive(tmp_path), "m", wanted, no_forest)


@pytest.mark.parametrize("threshold", [0.1, 1.0, -3.7, 1e-30, 12_345.678])
def test_thresholds_of_float32_equal_the_doubles_thresholds(threshold: float) -> None:
    single = np.float32(threshold)
    near = float(single) + np.spacing(single) * np.linspace(-2, 2, 4001)
    near = np.unique(np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)]))
    bound = forest().find_bound(float(single))
    assert ((near.astype(np.float32) < single) == (near <= bound)).all()
