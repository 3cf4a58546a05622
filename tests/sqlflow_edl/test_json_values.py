"""Values at paths of JSON texts in COLUMN: on each database, in a server, and where there are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SQLFlowError
from edl.models.archive import read_archive
from edl.spec.computed import JSON_PATH
from sqlflow_edl.backends.exporting import read_forest
from sqlflow_edl.extensions.model_sql import QueryOptions, model_query
from sqlflow_edl.extensions.serving.model import load_model
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill

CITIES = ("Oslo", "Rome", "Kyiv")


def payload(number: int) -> str | None:
    if number % 20 == 0:
        return None if number % 40 else "{}"
    user = {"age": number % 50, "city": CITIES[number % 3], "new": number % 2 == 0}
    return json.dumps({"user": user, "tags": [number, "x"]})


EVENTS = pa.table(
    {
        "payload": [payload(each) for each in range(1, 201)],
        "spent": [each % 50 * 2.0 for each in range(1, 201)],
    }
)
TRAIN = """SELECT payload, spent FROM events
TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2, validation.fraction = 0
COLUMN JSON(payload, '$.user.age') AS age, BUCKETIZE(age, 4), JSON_EXTRACT(payload, '$.user.new'), LOG(age + 1),
  VOCABULARIZE(JSON(payload, '$.user.city')) LABEL spent INTO m"""


@pytest.fixture(scope="module", params=["duckdb", "mysql", "sqlite", "postgres"])
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("json")))
        with Session(databases.url(request.param), create=True) as opened:
            fill(opened, "events", EVENTS)
            yield opened


def features(session: Session, text: str) -> dict[str, str]:
    [found] = session.run(f"EXPLAIN {text}")
    rows = found.to_arrow().to_pylist()
    of_features = [row for row in rows if row["section"] == "features"]
    return {row["name"]: row["value"] for row in reversed(of_features)}  # the first one of each column


def test_a_model_reads_numbers_and_categories_in_json_texts(session: Session) -> None:
    found = features(
        session, TRAIN.replace("BoostedTreesRegressor WITH train.num_boost_round = 2,", "DNNRegressor WITH")
    )
    age = "JSON(payload, '$.user.age')"
    assert found[f"LN({age} + 1)"].startswith("standardize")
    assert found[age].startswith("one-hot of bucket, 3 boundaries")
    assert found["JSON(payload, '$.user.new')"].startswith("standardize, mean 0.")
    city = "one-hot of vocabulary, 3 values: Rome, Kyiv, Oslo; an id for unseen ones; 5 wide"
    assert sorted(found["JSON_TEXT(payload, '$.user.city')"]) == sorted(city)


def test_rows_with_text_that_is_no_json_are_errors_or_left_out(session: Session) -> None:
    bad = TRAIN.replace("FROM events", "FROM (SELECT * FROM events UNION ALL SELECT 'oops', 1) e")
    with pytest.raises(SQLFlowError, match="payload holds 'oops', which is no JSON") as raised:
        session.compile(bad)
    assert raised.value.span is not None
    assert bad[raised.value.span.start :].startswith("BUCKETIZE(age, 4)")
    skip = bad.replace("validation.fraction = 0", "validation.fraction = 0, train.on_bad_row = skip")
    if session.dialect == "postgres":  # has no function that tells
        with pytest.raises(SQLFlowError, match="is no JSON"):
            session.compile(skip)
        return
    [compiled] = session.compile(skip)
    assert compiled.spec.rows.training == 200
    assert any("1 of 201 rows have no spent or no JSON in payload" in note for note in compiled.notes)


@pytest.mark.parametrize(
    "text", ["JSON(payload, '$.user')", "JSON(payload, '$.tags')", "ONE_HOT(JSON(payload, '$.user'))"]
)
def test_an_object_is_no_value(session: Session, text: str) -> None:
    with pytest.raises(SQLFlowError, match="which is no single value"):
        session.compile(f"SELECT * FROM events TO TRAIN LinearRegressor COLUMN {text} LABEL spent INTO m")


@pytest.mark.parametrize("path", ['$."*"', "$.user[٣]", "$[99999999999]"])
def test_a_path_that_duckdb_reads_otherwise_is_refused(path: str) -> None:
    assert JSON_PATH.fullmatch('$."* b".ä[3]')
    assert not JSON_PATH.fullmatch(path)


@pytest.mark.parametrize(
    ("item", "hint"),
    [
        (
            "JSON(payload, '$.User.age')",
            "no text has a value at the path; capital and small letters differ",
        ),
        ("HOUR(JSON(payload, '$.user.age'))", "compute a time in the SELECT, and name its column"),
    ],
)
def test_an_error_says_how_to_go_on(session: Session, item: str, hint: str) -> None:
    with pytest.raises(SQLFlowError) as raised:
        session.compile(f"SELECT * FROM events TO TRAIN LinearRegressor COLUMN {item} LABEL spent INTO m")
    assert raised.value.hint == hint


def test_a_text_is_no_number(session: Session) -> None:
    with pytest.raises(SQLFlowError, match="holds 'Rome', which is no number") as raised:
        session.compile(
            TRAIN.replace("VOCABULARIZE(JSON(payload, '$.user.city'))", "JSON(payload, '$.user.city')")
        )
    assert raised.value.hint == "write VOCABULARIZE(JSON(payload, '$.user.city')) for a category"


def test_raw_texts_are_sent_to_a_server_and_to_python(session: Session, tmp_path: Path) -> None:
    list(session.run(TRAIN))
    [predicted] = session.run("SELECT * FROM events ORDER BY payload TO PREDICT USING m")
    wanted = predicted.to_arrow()
    file = tmp_path / "m.zip"
    session.registry.load("m", file)
    model = load_model(file, "m@1")
    assert model.schema == pa.schema({"payload": pa.string()})
    [batch] = wanted.select(["payload"]).combine_chunks().to_batches()
    assert model.predictor.predict(batch)["spent"].to_pylist() == wanted["spent"].to_pylist()
    seen = sqlflow_edl.load_transform(file).transform(pa.table({"payload": ['{"user": {"age": "7"}}', None]}))
    assert seen.column(0).to_pylist() == ["below 12.25", None]
    with pytest.raises(SQLFlowError, match="is computed in Python, and written in no SQL"):
        stored = read_archive(file)
        model_query(stored, "m@1", QueryOptions("duckdb", "events"), lambda: read_forest(stored, file))
