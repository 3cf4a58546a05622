"""Networks as ONNX over raw columns, run by onnxruntime: the rows get what PREDICT gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl import spec
from edl.frameworks.networks.onnx import NetworkFile, reason_against
from edl.frameworks.onnx.ensemble import EnsembleFile
from edl.models.archive import Archive
from sqlflow_edl.extensions.model_sql import QueryOptions, model_query
from sqlflow_edl.extensions.serving.model import load_model
from tests.sqlflow_edl.extensions.model_sql.test_text import CITY, archive, no_forest
from tests.trained import Models, fed, rows

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


def scores(file: NetworkFile | EnsembleFile, batch: pa.RecordBatch) -> np.ndarray:
    """The probabilities of classes, or the numbers."""
    session = onnxruntime.InferenceSession(file.of_onnx())
    names = [each.name for each in session.get_inputs()]
    found: np.ndarray = session.run(None, fed(batch, names))[-1]
    return found


def calibrated(archive: Archive) -> spec.JobSpec:
    """The JobSpec as `sqlflow export` has it."""
    found = archive.calibration
    return msgspec.structs.replace(archive.spec, temperature=found.temperature if found else 1.0)


@pytest.mark.soak
def test_an_ensemble_has_the_weighted_mean_of_its_scores(trained: Models) -> None:
    members = [trained["deep"], trained["linear_classes"]]
    fresh = rows(500, 3)
    whole = msgspec.structs.replace(
        members[0].archive.spec,
        inputs={},
        members=tuple(spec.Member(0.5, each.archive.spec) for each in members),
    )
    parts = [NetworkFile(calibrated(each.archive), each.archive.weights()) for each in members]
    file = EnsembleFile(whole, list(zip((0.25, 0.75), parts, strict=True)))
    [batch] = fresh.to_batches()
    deep, linear = (each.model.predictor.scores(batch.select(each.model.schema.names))[0] for each in members)
    np.testing.assert_allclose(scores(file, batch), 0.25 * deep + 0.75 * linear, rtol=1e-6, atol=1e-6)


@pytest.mark.variants(4)
@pytest.mark.parametrize("activation", ["relu", "elu", "selu", "gelu", "silu", "tanh", "sigmoid", "mish"])
def test_activations_equal_predict(activation: str, tmp_path: Path) -> None:
    """In SQL too, except for one that it lacks."""
    features = (spec.Standardize("amount", 0.0, 1.0), spec.OneHot(CITY))
    component = spec.Component("DNNClassifier", {"hidden_units": (3,), "activation": activation})
    found = archive(tmp_path, model=component, inputs={"features": features})
    amounts = [None, *np.linspace(-2000, 2000, 9), *np.linspace(-3, 3, 13)]
    table = pa.table({"amount": pa.array(amounts, pa.float64()), "ci ty": ["O'slo"] * len(amounts)})
    model = load_model(tmp_path / "m.zip")
    [batch] = table.to_batches()
    wanted = model.predictor.scores(batch)[0]
    near = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(scores(NetworkFile(found.spec, found.weights()), batch), wanted, **near)
    if activation == "gelu":
        return
    query = model_query(found, "m", QueryOptions("duckdb", "given_rows"), no_forest)
    with duckdb.connect() as connection:
        connection.register("given_rows", table)
        columns = connection.sql(query.rstrip().removesuffix(";")).fetchnumpy()
    np.testing.assert_allclose(np.stack([*columns.values()][2:], axis=1).astype(float), wanted, **near)


def test_real_mlp_is_a_dense_network(tmp_path: Path) -> None:
    features = (spec.Standardize("amount", 0.0, 1.0), spec.OneHot(CITY))
    draw, width = np.random.default_rng(5), sum(map(spec.width, features))
    shapes = {"1.scale": (width,), "2.weight": (3, width), "2.bias": (3,), "4.weight": (1, 3), "4.bias": (1,)}
    weights = {f"layers.{name}": draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    found = archive(
        tmp_path,
        weights,
        model=spec.Component(
            "RealMLPRegressor", {"hidden_units": (3,), "activation": "mish", "dropout": 0.0}
        ),
        inputs={"features": features},
        label=spec.RegressionLabel("y", 7.0, 3.0),
        loss=spec.Component("mean_squared_error"),
        metrics=("rmse",),
    )
    amounts = pa.array([None, *np.linspace(-9, 9, 20)], pa.float64())
    [batch] = pa.table({"amount": amounts, "ci ty": ["O'slo"] * 21}).to_batches()
    wanted = load_model(tmp_path / "m.zip").predictor.scores(batch)[0]
    assert np.ptp(wanted) > 1
    made = scores(NetworkFile(found.spec, found.weights()), batch)
    np.testing.assert_allclose(made, wanted.reshape(made.shape), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"inputs": {"features": (spec.OneHot(spec.HashBucket("ci ty", 9)),)}}, "a feature of column ci ty"),
        ({"inputs": {"features": (spec.OneHot(CITY), spec.Numeric("ci ty"))}}, "a feature of column ci ty"),
        ({"model": spec.Component("DeepFMClassifier", {})}, "not a built-in dense network"),
    ],
)
def test_a_model_without_a_graph_says_why(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    found = archive(tmp_path, **{"model": spec.Component("DNNClassifier", {"hidden_units": (2,)}), **changes})
    assert words in reason_against(found.spec, found.weights())
