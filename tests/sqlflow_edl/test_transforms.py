"""Transforms: columns that are fitted without a model, and the models that reuse them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import sqlflow_edl
from edl import spec
from edl.errors import SQLFlowError
from edl.models.archive import read_archive
from sqlflow_edl.cli.main import main
from sqlflow_edl.extensions.serving.model import load_model
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill

TRIPS = pa.table(
    {
        "origin": ["Oslo", "Rome", "Kyiv", None] * 75,
        "goal": ["Rome", "Kyiv", "Bern"] * 100,
        "km": [10 + each % 13 for each in range(300)],
        "cost": [40.0 + each % 17 for each in range(300)],
    }
)
TRAIN = """SELECT origin, goal, km FROM trips
TO TRAIN Transform COLUMN BUCKETIZE(km, 4), EMBEDDING([origin, goal], 3) INTO t"""
REFUSED = "t@1 is a transform, which predicts nothing"


@pytest.fixture(scope="module", params=["duckdb", "mysql"])
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """A database with a transform of its rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("transforms")))
        with Session(databases.url(request.param), create=True, workers=2) as opened:
            fill(opened, "trips", TRIPS)
            [done] = opened.run(TRAIN)
            assert done.message == "fitted 3 features of t@1 to 300 rows"
            yield opened


def archive(session: Session, name: str, folder: Path) -> Path:
    session.registry.load(name, folder / "model.zip")
    return folder / "model.zip"


@pytest.mark.soak
def test_columns_are_fitted_to_all_rows_and_no_weights_are_stored(session: Session, tmp_path: Path) -> None:
    found = read_archive(archive(session, "t", tmp_path))

    boundaries, *vectors = found.spec.features
    assert boundaries == spec.OneHot(spec.Bucket("km", (13.0, 16.0, 19.0)))
    assert all(isinstance(each, spec.Embedding) and each.table == 1 for each in vectors)
    assert (found.spec.rows.training, found.weights(), found.program) == (300, {}, {})
    assert found.lineage.data_digest
    assert found.fitting is not None
    assert "origin" in found.fitting.columns


def test_other_models_see_rows_as_the_transform_does(session: Session) -> None:
    few = "SELECT goal, km, origin, cost FROM trips WHERE km < 14"
    [planned] = session.run(f"EXPLAIN {few} TO TRAIN BoostedTrees COLUMN FEATURES(t) LABEL cost INTO m")
    shown = {
        row["name"]: row["value"] for row in planned.to_arrow().to_pylist() if row["section"] == "features"
    }
    assert shown["km"] == "codes of bucket, 3 boundaries: 13, 16, 19"


def test_the_features_of_rows_are_those_in_sql_and_in_python(session: Session) -> None:
    found = next(session.stream("SHOW FEATURES FOR t (SELECT * FROM trips LIMIT 5)")).to_arrow()
    rows = next(session.stream("SELECT * FROM trips LIMIT 5")).to_arrow()
    assert found.column_names[0] == "cost"
    assert found[1].to_pylist()[0] == "below 13"
    assert sqlflow_edl.load_transform("t", source=session).transform(rows).equals(found)


@pytest.mark.soak
def test_rows_are_compared_with_the_transforms_rows(session: Session) -> None:
    [found] = session.run(
        "SELECT * FROM trips WHERE goal <> 'Rome' TO PREDICT WITH predict.report = drift USING t"
    )
    table = found.to_arrow()
    verdicts = dict(zip(table["column"].to_pylist(), table["verdict"].to_pylist(), strict=True))
    assert verdicts["goal"] == "drifted"


def test_a_model_of_bigquery_ml_without_a_label_is_one(session: Session) -> None:
    list(
        session.run(
            "CREATE OR REPLACE MODEL u OPTIONS(model_type = 'TRANSFORM_ONLY') AS SELECT km, goal FROM trips"
        )
    )
    assert sqlflow_edl.load_transform("u", source=session).columns == ("km", "goal")


@pytest.mark.variants(4)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM trips TO PREDICT USING «t»", REFUSED),
        ("SELECT * FROM trips TO PREDICT x WITH predict.report = drift USING «t»", REFUSED),
        ("SELECT * FROM trips TO EVALUATE «t»", REFUSED),
        ("SELECT * FROM trips TO EXPLAIN «t»", REFUSED),
        ("SELECT * FROM PREDICT(«t», trips)", REFUSED),
        (
            "SELECT * FROM trips TO TRAIN DNN LABEL cost USING «t» INTO m",
            "t@1 is a transform, which has no weights",
        ),
        (
            "SELECT * FROM trips TO TRAIN Transform LABEL «cost» INTO v",
            "Transform is trained without a label",
        ),
        ("SELECT * FROM trips TO TRAIN Transform «VALIDATE 0.2» INTO v", "nothing is validated"),
        (
            "SELECT * FROM trips TO TRAIN Transform WITH «train.epoch» = 2 INTO v",
            "unknown attribute train.epoch",
        ),
        ("SELECT * FROM trips TO TRAIN Transform COLUMN «TARGET_ENCODE(goal)» INTO v", "is a mean of labels"),
        ("SELECT * FROM trips WHERE km < «0» TO TRAIN Transform INTO v", "the query yields no rows"),
    ],
)
def test_what_a_transform_cannot_do_is_an_error_at_its_place(
    session: Session, text: str, message: str
) -> None:
    with pytest.raises(SQLFlowError, match=message) as raised:
        list(session.run(text.replace("«", "").replace("»", "")))
    span = raised.value.span
    assert span is not None
    assert (span.start, span.end) == (text.index("«"), text.index("»") - 1)


def test_a_transform_is_neither_served_nor_exported(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SQLFlowError, match="is a transform, which predicts nothing"):
        load_model(archive(session, "t", tmp_path), "t@1")
    if session.dialect != "duckdb":  # the session holds the file of DuckDB
        for form in (["-o", str(tmp_path / "t.onnx")], ["--sql", "--from", "trips"]):
            assert main(["export", "--source", session.source.url, "t", *form]) == 1
            assert "is a transform, which predicts nothing" in capsys.readouterr().err
