"""Anomalies from TRAIN without a label to PREDICT, EVALUATE and export."""

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

rng = np.random.default_rng(7)
USUAL = np.arange(600) < 570
PLACES = np.where(USUAL[:, None], rng.normal(size=(600, 2)), rng.uniform(-9, 9, (600, 2)))
POINTS = pa.table(
    {
        "x": PLACES[:, 0],
        "y": PLACES[:, 1],
        "kind": np.where(USUAL, "usual", "odd"),
        "odd": ~USUAL,
        "odd_number": (~USUAL).astype(np.int64),
    }
)
TRAIN = "SELECT x, y FROM points TO TRAIN IsolationForest WITH model.contamination = 0.05"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("anomalies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/anomalies.duckdb", create=True) as opened:
            fill(opened, "points", POINTS)
            list(opened.run(f"{TRAIN} INTO strange"))
            yield opened


def last(session: Session, text: str) -> pa.Table:
    return list(session.run(text))[-1].to_arrow()


def test_predict_tells_anomalies_with_their_scores(session: Session) -> None:
    list(session.run("SELECT x, y, odd FROM points TO PREDICT found.unusual USING strange"))

    found = last(session, "SELECT * FROM found")
    assert found.column_names == ["x", "y", "odd", "unusual", "unusual_score"]
    unusual, score = found["unusual"].to_numpy(), found["unusual_score"].to_numpy()
    assert (unusual == (score > 0.5)).all()
    assert unusual.mean() == pytest.approx(0.05, abs=0.02)
    assert found["odd"].to_numpy()[unusual].mean() > 0.8
    farthest = np.hypot(found["x"], found["y"]).argmax()
    assert score[farthest] > np.quantile(score, 0.99)


@pytest.mark.soak
def test_the_same_statement_gives_the_same_forest(session: Session) -> None:
    list(session.run(f"{TRAIN} INTO again"))

    scores = [
        last(session, f"SELECT x, y FROM points TO PREDICT USING {name}") for name in ("strange", "again")
    ]
    assert scores[0] == scores[1]


def test_evaluate_gives_the_rate_and_with_a_label_the_figures_of_a_classifier(session: Session) -> None:
    [row] = last(session, "SELECT * FROM points TO EVALUATE strange").to_pylist()
    assert row["anomaly_rate"] == pytest.approx(0.05, abs=0.02)
    known = [
        last(session, f"SELECT * FROM points TO EVALUATE strange LABEL {name}")
        for name in ("odd", "odd_number")
    ]
    assert known[0] == known[1]
    [row] = known[0].to_pylist()
    assert row["auc"] > 0.95
    assert row["precision"] > 0.8


@on_each("url", always=())
def test_every_database_holds_the_anomalies(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        fill(session, "points", POINTS)
        list(
            session.run(
                f"{TRAIN} INTO strange; SELECT x, y FROM points TO PREDICT found.unusual USING strange"
            )
        )
        found = last(session, "SELECT unusual, unusual_score FROM found").to_pylist()
    assert all(bool(row["unusual"]) == (row["unusual_score"] > 0.5) for row in found)
    assert 20 < sum(bool(row["unusual"]) for row in found) < 45


@pytest.mark.soak
def test_the_export_as_onnx_takes_any_number_of_rows(session: Session, tmp_path: Path) -> None:
    import onnxruntime

    path = str(tmp_path / "strange.onnx")
    assert main(["export", "strange", "-o", path, "--source", session.source.url]) == 0
    model = onnxruntime.InferenceSession(path)
    rows = rng.normal(size=(5, 2)).astype(np.float32)
    [odds] = model.run(None, {model.get_inputs()[0].name: rows})
    assert odds.shape == (5, 1)


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TRAIN} LABEL x INTO other", "IsolationForest is trained without a label"),
        (f"{TRAIN}, validation.metrics = auc INTO other", "for an anomaly: anomaly_rate"),
        ("SELECT x FROM points TO TRAIN IsolationForest WITH contamination = 2 INTO other", "0.0001 to 0.5"),
        ("SELECT * FROM points TO EXPLAIN strange", "finds anomalies, and EXPLAIN"),
        ("SELECT * FROM points TO EVALUATE strange LABEL kind", "known anomalies are a boolean, or 0 and 1"),
        ("SELECT * FROM points TO PREDICT WITH predict.interval = 0.9 USING strange", "finds anomalies"),
        ("SELECT x FROM points LIMIT 1 TO TRAIN IsolationForest INTO other", "no rows to compare"),
    ],
)
def test_what_a_forest_cannot_do_is_an_error(session: Session, text: str, message: str) -> None:
    with pytest.raises(SQLFlowError) as caught:
        list(session.run(text))

    assert message in f"{caught.value} {caught.value.hint}"
