"""Networks as ONNX over raw columns, run by onnxruntime: the rows get what PREDICT gives them."""

from __future__ import annotations

from collections.abc import Sequence
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
from sqlflow_edl.model_sql import Wanted, model_query
from sqlflow_edl.serving.model import load_model
from tests.sqlflow_edl.model_sql.conftest import SOAK, Models, Trained, rows, statements
from tests.sqlflow_edl.model_sql.test_text import CITY, archive, no_forest

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

NETWORKS = [name for name, text in statements().items() if "DNN" in text or "Linear" in text]
NAMES = [pytest.param(name, marks=pytest.mark.soak) if name in SOAK else name for name in NETWORKS]


def fed(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The columns as the inputs of the ONNX model."""
    found = {}
    for name in names:
        values = batch.column(name)
        if pa.types.is_string(values.type):
            found[name] = np.array(values.fill_null("").to_pylist(), dtype=object)
            continue
        if pa.types.is_temporal(values.type):
            seconds = values.cast(pa.timestamp("us")).cast(pa.int64())
            found[name] = seconds.cast(pa.float64()).to_numpy(zero_copy_only=False) / 1e6
            continue
        found[name] = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


def scores(file: NetworkFile | EnsembleFile, batch: pa.RecordBatch) -> np.ndarray:
    """The probabilities of classes, or the numbers."""
    session = onnxruntime.InferenceSession(file.of_onnx())
    names = [each.name for each in session.get_inputs()]
    found: np.ndarray = session.run(None, fed(batch, names))[-1]
    return found


def assert_predicted(file: NetworkFile, trained: Trained, count: int) -> None:
    """The rows have extremes beyond float32, of which sums lose digits: their size is the least that is compared."""
    [batch] = rows(count, 2, infinite=True).select(trained.model.schema.names).to_batches()
    found, wanted = scores(file, batch), trained.model.predictor.scores(batch)
    extreme = np.abs(wanted) > 1e6
    np.testing.assert_allclose(found[~extreme], wanted[~extreme], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[extreme], wanted[extreme], rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_raw_columns_are_those_of_predict(name: str, trained: Models) -> None:
    found = trained[name].archive
    assert not reason_against(found.spec, found.weights())
    assert_predicted(NetworkFile(found.spec, found.weights()), trained[name], 2_000)


@pytest.mark.soak
@pytest.mark.parametrize("name", NETWORKS)
def test_scores_of_many_rows_are_those_of_predict(name: str, trained: Models) -> None:
    found = trained[name].archive
    assert_predicted(NetworkFile(found.spec, found.weights()), trained[name], 100_000)


def test_an_ensemble_has_the_weighted_mean_of_its_scores(trained: Models) -> None:
    members = [trained["deep"], trained["linear_classes"]]
    fresh = rows(500, 3)
    whole = msgspec.structs.replace(
        members[0].archive.spec,
        inputs={},
        members=tuple(spec.Member(0.5, each.archive.spec) for each in members),
    )
    parts = [NetworkFile(each.archive.spec, each.archive.weights()) for each in members]
    file = EnsembleFile(whole, list(zip((0.25, 0.75), parts, strict=True)))
    [batch] = fresh.to_batches()
    deep, linear = (each.model.predictor.scores(batch.select(each.model.schema.names)) for each in members)
    np.testing.assert_allclose(scores(file, batch), 0.25 * deep + 0.75 * linear, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "elu", "selu", "gelu", "silu", "tanh", "sigmoid"])
def test_activations_are_those_of_predict(activation: str, tmp_path: Path) -> None:
    """In SQL too, except for one that it lacks."""
    features = (spec.Standardize("amount", 0.0, 1.0), spec.OneHot(CITY))
    component = spec.Component("DNNClassifier", {"hidden_units": (3,), "activation": activation})
    found = archive(tmp_path, model=component, inputs={"features": features})
    amounts = [None, *np.linspace(-2000, 2000, 9), *np.linspace(-3, 3, 13)]
    table = pa.table({"amount": pa.array(amounts, pa.float64()), "ci ty": ["O'slo"] * len(amounts)})
    model = load_model(tmp_path / "m.zip")
    [batch] = table.to_batches()
    wanted = model.predictor.scores(batch)
    near = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(scores(NetworkFile(found.spec, found.weights()), batch), wanted, **near)
    if activation == "gelu":
        return
    query = model_query(found, "m", Wanted("duckdb", "given_rows"), no_forest)
    with duckdb.connect() as connection:
        connection.register("given_rows", table)
        columns = connection.sql(query.rstrip().removesuffix(";")).fetchnumpy()
    np.testing.assert_allclose(np.stack([*columns.values()][2:], axis=1).astype(float), wanted, **near)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"inputs": {"features": (spec.OneHot(spec.HashBucket("ci ty", 9)),)}}, "a feature of column ci ty"),
        ({"inputs": {"features": (spec.OneHot(CITY), spec.Numeric("ci ty"))}}, "a feature of column ci ty"),
        ({"model": spec.Component("DeepFMClassifier", {})}, "no built-in dense network"),
    ],
)
def test_a_model_without_a_graph_says_why(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    found = archive(tmp_path, **{"model": spec.Component("DNNClassifier", {"hidden_units": (2,)}), **changes})
    assert words in reason_against(found.spec, found.weights())
