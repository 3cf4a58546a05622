"""Principal components and autoencoders from TRAIN without a label to PREDICT, EVALUATE and export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SQLFlowError
from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.databases import fill, on_each
from tests.sessions import open_in_folder

rng = np.random.default_rng(11)
HIDDEN = rng.normal(size=(400, 2))
NUMBERS = HIDDEN @ rng.normal(size=(2, 5)) + rng.normal(size=(400, 5)) / 5 + [0, 10, -100, 1000, 3]
POINTS = pa.table(
    {f"x{place}": NUMBERS[:, place] for place in range(5)}
    | {"kind": np.where(HIDDEN[:, 0] > 0, "right", "left"), "row_id": np.arange(400)}
)
COLUMNS = ", ".join(f"x{place}" for place in range(5))
PCA = f"SELECT {COLUMNS} FROM points TO TRAIN PCA"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("reductions")) as opened:
        fill(opened, "points", POINTS)
        opened.run(f"{PCA} WITH model.num_components = 2 INTO parts")
        yield opened


def last(session: Session, text: str) -> pa.Table:
    return list(session.run(text))[-1].to_arrow()


def reference(number: int, *, scale: bool = True) -> np.ndarray:
    """Return the components of NumPy, (rows, number)."""
    rows = (NUMBERS - NUMBERS.mean(axis=0)) / (NUMBERS.std(axis=0) if scale else 1)
    _, _, vectors = np.linalg.svd(rows, full_matrices=False)
    return rows @ vectors[:number].T


def numbers(table: pa.Table, name: str, count: int) -> np.ndarray:
    return np.column_stack([table[f"{name}_{place}"] for place in range(1, count + 1)]).astype(np.float64)


def test_predict_writes_the_components_of_numpy(session: Session) -> None:
    session.run("SELECT * FROM points TO PREDICT reduced.part USING parts")
    reduced = last(session, "SELECT * FROM reduced ORDER BY row_id")
    assert reduced.column_names[-3:] == ["part_1", "part_2", "part_error"]
    np.testing.assert_allclose(np.abs(numbers(reduced, "part", 2)), np.abs(reference(2)), atol=1e-6)


def test_numbers_keep_their_unit_without_a_scale(session: Session) -> None:
    session.run(f"{PCA} WITH num_components = 3, scale_features = FALSE INTO unscaled")
    found = last(session, "SELECT * FROM PREDICT(unscaled, (SELECT * FROM points)) ORDER BY row_id")
    found = numbers(found, "principal_component", 3)
    np.testing.assert_allclose(np.abs(found), np.abs(reference(3, scale=False)), atol=2e-4)  # 1000 in float32


def test_evaluate_tells_the_share_of_the_variance(session: Session) -> None:
    [row] = last(session, "SELECT * FROM points TO EVALUATE parts").to_pylist()
    assert row["explained_variance_ratio"] == pytest.approx(
        np.square(reference(2)).sum() / (400 * 5), abs=1e-6
    )
    assert row["reconstruction_mse"] == pytest.approx(1 - row["explained_variance_ratio"], abs=1e-6)


def test_a_share_of_the_variance_decides_on_the_number(session: Session) -> None:
    session.run(f"{PCA} WITH explained_variance_ratio = 0.8 INTO enough")
    found = last(session, "SELECT * FROM PREDICT(enough, (SELECT * FROM points))")
    assert [name for name in found.column_names if "component" in name] == [
        "principal_component_1",
        "principal_component_2",
        "principal_component_error",
    ]
    described = last(session, "DESCRIBE MODEL enough").to_pylist()
    assert any(row.get("value", "").startswith("2 numbers") for row in described)


def test_without_a_number_there_are_as_many_components_as_features(session: Session) -> None:
    session.run(f"{PCA} INTO every_part")
    [row] = last(session, "SELECT * FROM points TO EVALUATE every_part").to_pylist()
    assert row["explained_variance_ratio"] == pytest.approx(1.0, abs=1e-9)


@on_each("url", always=())
def test_every_database_has_the_same_components(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        fill(session, "points", POINTS)
        session.run(f"SELECT {COLUMNS}, kind FROM points TO TRAIN PCA WITH num_components = 2 INTO parts")
        session.run("SELECT * FROM points TO PREDICT reduced.part USING parts")
        rows = last(session, "SELECT row_id, part_1, part_2 FROM reduced").to_pylist()
    found = np.array([[row["part_1"], row["part_2"]] for row in sorted(rows, key=lambda row: row["row_id"])])
    one_hot = np.column_stack([POINTS["kind"].to_numpy() == kind for kind in ("left", "right")]).astype(
        np.float64
    )
    inputs = np.column_stack([(NUMBERS - NUMBERS.mean(axis=0)) / NUMBERS.std(axis=0), one_hot])
    inputs -= inputs.mean(axis=0)
    _, _, vectors = np.linalg.svd(inputs, full_matrices=False)
    np.testing.assert_allclose(np.abs(found), np.abs(inputs @ vectors[:2].T), atol=1e-6)


@pytest.mark.soak
def test_an_autoencoder_restores_the_columns_of_hidden_numbers(session: Session) -> None:
    session.run(
        f"SELECT {COLUMNS} FROM points TO TRAIN Autoencoder WITH model.hidden_units = [16, 2, 16], train.epochs = 60 "
        "INTO codes"
    )
    [row] = last(session, "SELECT * FROM points TO EVALUATE codes").to_pylist()
    assert row["explained_variance_ratio"] > 0.85
    found = last(session, "SELECT * FROM PREDICT(codes, (SELECT * FROM points))")
    assert found.column_names[-3:] == ["latent_col_1", "latent_col_2", "latent_col_error"]


@pytest.mark.soak
@pytest.mark.parametrize("suffix", ["onnx", "pt2"])
def test_the_export_has_the_outputs_of_the_model(session: Session, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"parts.{suffix}"
    assert main(["export", "parts", "-o", str(path), "--source", session.source.url]) == 0
    assert path.stat().st_size > 0


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{PCA} LABEL x0 INTO other", "PCA is trained without a label"),
        (f"{PCA} WITH num_components = 9 INTO other", "5 features have at most 5 components"),
        (f"{PCA} WITH num_components = 2, explained_variance_ratio = 0.5 INTO other", "both tell the number"),
        (f"{PCA} WITH train.epochs = 3 INTO other", "solved for in one pass, and train.epoch"),
        (f"{PCA} WITH optimizer = adam INTO other", "solved for in one pass, and optimizer"),
        (
            f"{PCA} WITH train.num_workers = 2 INTO other",
            "principal_components solves for the weights in one process",
        ),
        (f"{PCA} WITH validation.metrics = auc INTO other", "this label is a reduction"),
        ("SELECT x0 FROM points LIMIT 1 TO TRAIN PCA INTO other", "fewer than two rows"),
        ("SELECT * FROM points TO EXPLAIN parts", "numbers without a label, and EXPLAIN"),
        (
            "SELECT * FROM points TO PREDICT WITH predict.interval = 0.9 USING parts",
            "numbers without a label",
        ),
        (
            "SELECT x0, x1 FROM points TO TRAIN DNNRegressor WITH optimizer = principal_components LABEL x1 INTO o",
            "PCA",
        ),
    ],
)
def test_a_statement_that_suits_no_reduction_is_refused(session: Session, text: str, message: str) -> None:
    with pytest.raises(SQLFlowError, match=message):
        session.run(text)
