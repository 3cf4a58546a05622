"""One model, all ways to predict with it: the same rows get the same answers.

The rows have NULLs in each column, texts with quotes, dates, and categories that training has not seen. Answers are
equal bit for bit where rows are columns, and to 1e-6 where they are texts or come one at a time.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sqlflow_edl
from sqlflow_edl.cli.main import main
from sqlflow_edl.serving.arrow_stream import MEDIA_TYPE, write_stream
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.searches import short
from tests.sqlflow_edl.model_sql.test_onnx import fed
from tests.sqlflow_edl.serving.conftest import Client, Serve
from tests.sqlflow_edl.serving.rows_of_sales import new_sales, sales

COLUMNS = "amount, city, day, is_new"
ROWS = f"SELECT {COLUMNS} FROM fresh ORDER BY id"
TRAIN = f"SELECT {COLUMNS}, kind FROM sales"
NET = "TO TRAIN DNNClassifier WITH model.framework = {}, hidden_units = [4], epochs = 1 LABEL kind INTO m"
MODELS = {
    "torch": NET.format("torch"),
    "trees": "TO TRAIN lightgbm.gbdt WITH train.num_boost_round = 4 LABEL kind INTO m",
    "keras": NET.format("keras"),
    "ensemble": "LABEL kind INTO m",
}
SOAK = ("keras", "ensemble")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.soak) if name in SOAK else name for name in MODELS],
)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with a model, the rows, the predictions of a statement in a table, and those of a query."""
    folder = tmp_path_factory.mktemp(f"skew_{request.param}")
    with pytest.MonkeyPatch.context() as patch, short(trials=2):
        patch.setenv("XDG_STATE_HOME", str(folder))
        found = f"duckdb:///{folder}/skew.duckdb"
        with Session(found, create=True) as session:
            fill(session, "sales", sales())
            fill(session, "fresh", new_sales())
            for _ in session.run(
                f"{TRAIN} {MODELS[request.param]}; {ROWS} TO PREDICT written.kind USING m;"
                f"CREATE TABLE queried AS SELECT * FROM PREDICT(m, ({ROWS}))"
            ):
                pass
    yield found
    shutil.rmtree(folder)


def test_all_ways_to_predict_give_the_same_answers(url: str, serve: Serve, tmp_path: Path) -> None:
    with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
        written = connection.sql("FROM written").to_arrow_table()
        queried = connection.sql("FROM queried").to_arrow_table()
        expected = written.drop_columns(COLUMNS.split(", ")).to_pylist()
        sqlflow_edl.register(connection, "m", name="m")
        ordered = "(SELECT * FROM fresh ORDER BY id)"
        function = connection.sql(f"SELECT m_all({COLUMNS}) AS p FROM {ordered}").to_arrow_table()
    with serve(url) as client:
        texts, arrow = asked(client)
    assert len(expected) == new_sales().num_rows
    assert queried.equals(written)
    assert function["p"].to_pylist() == expected
    assert arrow == expected
    assert_close(texts, expected)
    assert_close(by_sqlite(url), expected)
    if "ensemble" not in url:
        assert_close(by_plain_sql(url, tmp_path / "m.sql"), expected)
    assert_close(by_onnx(url, tmp_path / "m.onnx"), expected)


def asked(client: Client) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The answers of a server to JSON and to Arrow."""
    rows = [{**row, "day": row["day"] and row["day"].isoformat()} for row in new_sales().to_pylist()]
    texts = client.ask("POST", "/v1/models/m/predict", {"records": rows}).json["predictions"]
    stream = write_stream(new_sales().to_batches()[0])
    answer = client.ask("POST", "/v1/models/m/predict", stream, content_type=MEDIA_TYPE)
    return texts, pa.ipc.open_stream(answer.body).read_all().to_pylist()


def by_sqlite(url: str) -> list[dict[str, object]]:
    """The answers of a function of SQLite."""
    connection = sqlite3.connect(":memory:")
    with sqlflow_edl.connect(url) as session:
        sqlflow_edl.register(connection, "m", source=session)
    marks = ", ".join("?" * 4)
    found = []
    for row in new_sales().to_pylist():
        values = (row["amount"], row["city"], row["day"] and row["day"].isoformat(), row["is_new"])
        ((text,),) = connection.execute(f"SELECT predict_m_all({marks})", values)
        found.append(json.loads(text))
    return found


def by_plain_sql(url: str, file: Path) -> list[dict[str, object]]:
    """The answers of the query that the command writes."""
    assert (
        main(["export", "m", "--sql", "--from", "fresh", "--keep", "id", "-o", str(file), "--source", url])
        == 0
    )
    with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
        found = connection.sql(file.read_text(encoding="utf-8")).to_arrow_table()
    return found.sort_by("id").drop_columns("id").to_pylist()


def by_onnx(url: str, file: Path) -> list[dict[str, object]]:
    """The answers of the ONNX model that the command writes."""
    onnxruntime = pytest.importorskip("onnxruntime")
    assert main(["export", "m", "-o", str(file), "--source", url]) == 0
    session = onnxruntime.InferenceSession(file)
    given = fed(new_sales().combine_chunks().to_batches()[0], [each.name for each in session.get_inputs()])
    _, scores = session.run(None, given)
    classes = sorted(sales()["kind"].unique().to_pylist())
    return [
        {
            "kind": classes[row.argmax()],
            "kind_prob": row.max(),
            **{f"kind_prob_{name}": share for name, share in zip(classes, row, strict=True)},
        }
        for row in scores
    ]


def assert_close(found: list[dict[str, object]], expected: list[dict[str, object]]) -> None:
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        assert row == pytest.approx(other, abs=1e-6)
