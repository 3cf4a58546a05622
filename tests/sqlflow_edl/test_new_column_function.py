"""Column function that one file adds: statements, programs, plans and exports take it like a built-in one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl import features as fc
from edl import spec
from edl.errors import SemanticError
from edl.frameworks.networks import features as network_features
from edl.frameworks.networks.onnx import NetworkFile, reason_against
from edl.models.archive import Archive
from sqlflow_edl.analysis.columns.functions import BY_NAME
from sqlflow_edl.analysis.warm_start import signature
from sqlflow_edl.codegen import features as codegen_features
from sqlflow_edl.codegen.source import line
from sqlflow_edl.extensions.model_sql import QueryOptions, model_query
from sqlflow_edl.extensions.model_sql import features as sql_features
from sqlflow_edl.reports import text
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.edl.models.conftest import SPEC
from tests.fixtures.features import softsign
from tests.fixtures.features.softsign import SoftSign
from tests.sqlflow_edl.extensions.model_sql.test_text import archive, no_forest

LONGEST = 100  # lines of its file
ROWS = pa.table({"x": [1.0, 2.0, 3.0, 6.0] * 50, "y": [0.5, 1.0, 1.5, 3.0] * 50})
FEATURE: Any = SoftSign("amount", 2.0, 4.0)
AMOUNTS = pa.table({"amount": pa.array([2.0, 6.0, -10.0, None], pa.float64())})
EXPECTED = [0.0, 0.5, -0.75, 0.0]


@pytest.fixture(autouse=True)
def _register_softsign() -> Iterator[None]:
    """With its rows in the tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BY_NAME, "softsign", softsign.FUNCTION)
        patch.setitem(sql_features.VALUES, SoftSign, softsign.to_sql)
        patch.setitem(network_features.VALUES, SoftSign, softsign.to_onnx)
        yield


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session("duckdb:") as opened:
        fill(opened, "points", ROWS)
        yield opened


@pytest.fixture
def model(tmp_path: Path) -> Archive:
    """A network of one unit whose output is four times the feature."""
    weights = {"output.weight": np.full((1, 1), 4.0, np.float32), "output.bias": np.zeros(1, np.float32)}
    changes = {
        "model": spec.Component("LinearRegressor", {}),
        "label": spec.RegressionLabel("y"),
        "loss": spec.Component("mean_squared_error"),
        "metrics": (),
    }
    stored = archive(tmp_path, weights, inputs={"features": (spec.Numeric("amount"),)}, **changes)
    return replace(stored, spec=msgspec.structs.replace(stored.spec, inputs={"features": (FEATURE,)}))


def test_its_file_is_short() -> None:
    assert len(Path(softsign.__file__).read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_a_statement_fits_it_to_the_training_rows(session: Session) -> None:
    [compiled] = session.compile(
        "SELECT * FROM points TO TRAIN DNNRegressor COLUMN SOFTSIGN(x) LABEL y INTO m"
    )
    assert compiled.spec.features == (SoftSign("x", 3.0, 1.87082869),)


def test_trees_take_its_number_as_it_is(session: Session) -> None:
    [compiled] = session.compile(
        "SELECT * FROM points TO TRAIN BoostedTreesRegressor COLUMN SOFTSIGN(x) LABEL y INTO m"
    )
    assert compiled.spec.features == (spec.Raw("x"),)


def test_its_values_are_computed_and_checked() -> None:
    [batch] = AMOUNTS.to_batches()
    assert fc.Features(FEATURE).transform(batch)[fc.DENSE][:, 0].tolist() == EXPECTED
    with pytest.raises(SemanticError, match="mean of column amount must be a finite number"):
        softsign.softsign("amount", np.nan, 1.0)


def test_its_program_plan_and_signature_need_no_rows_of_tables() -> None:
    job = msgspec.structs.replace(SPEC, inputs={"features": (FEATURE,)})
    assert (
        line(codegen_features.features(job.inputs, {}))
        == 'fc.Features(fc.softsign("amount", mean=2.0, std=4.0))'
    )
    assert text.feature(FEATURE) == "softsign, mean 2, std 4"
    assert signature(FEATURE) == "softsign(amount)"


def test_its_form_in_sql_equals_its_values(model: Archive) -> None:
    query = model_query(model, "m", QueryOptions("duckdb", "given_rows"), no_forest)
    with duckdb.connect() as connection:
        connection.register("given_rows", AMOUNTS)
        [column] = connection.sql(query.rstrip().removesuffix(";")).fetchnumpy().values()
    np.testing.assert_allclose(column, 4 * np.array(EXPECTED), rtol=1e-6)


def test_its_form_in_onnx_equals_its_values(model: Archive) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    run = onnxruntime.InferenceSession(NetworkFile(model.spec, model.weights()).of_onnx())
    amounts = np.array([2.0, 6.0, -10.0, np.nan])
    outputs = run.run(None, {"amount": amounts})[0]
    np.testing.assert_allclose(outputs[:, 0], 4 * np.array(EXPECTED), rtol=1e-6)


def test_without_its_rows_exports_refuse_it_by_name(model: Archive) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sql_features.VALUES, SoftSign)
        patch.delitem(network_features.VALUES, SoftSign)
        with pytest.raises(SemanticError, match="SoftSign of column amount has no form in SQL"):
            model_query(model, "m", QueryOptions("duckdb", "given_rows"), no_forest)
        assert reason_against(model.spec, model.weights()) == "a feature of column amount has no operator"
