"""Categories of many ids, whose rows stand in tables outside of the graph, from TRAIN to PREDICT in both frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.models.archive import Archive, read_archive
from sqlflow_edl.results import Result
from sqlflow_edl.session import Session
from tests.databases import Databases, fill

VISITS = pa.table(
    {
        "who": [f"user {i * 7919 % 211}" for i in range(1500)],
        "page": [f"page {i % 53}" for i in range(1500)],
        "seconds": [float(i % 10) for i in range(1500)],
        "bought": [i * 7919 % 211 % 2 for i in range(1500)],
    }
)
NEW = "SELECT CONCAT('new ', who) AS who, CONCAT('new ', page) AS page, seconds FROM visits WHERE seconds = 3"
COLUMNS = "COLUMN seconds, hash(who, 100000), hash(page, 100000)"


def run(session: Session, text: str) -> list[Result]:
    return list(session.run(text))


def archive(session: Session, name: str, tmp_path: Path) -> Archive:
    session.registry.load(name, tmp_path / "model.zip")
    return read_archive(tmp_path / "model.zip")


@pytest.fixture(scope="module", params=[("keras", "duckdb"), ("torch", "mysql")], ids="-".join)
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """With a DeepFM over two large categories, of which it keeps the best epoch."""
    framework, dialect = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with sqlflow_edl.connect(databases.url(dialect), create=True) as opened:
            fill(opened, "visits", VISITS)
            run(opened, train(framework, "INTO shop"))
            yield opened


def train(framework: str, into: str, epochs: int = 8) -> str:
    settings = f"embedding_dim = 4, hidden_units = [8], epochs = {epochs}, train.keep = best, batch_size = 64"
    return (
        f"SELECT * FROM visits TO TRAIN DeepFMClassifier WITH {settings}, lr = 0.01, model.framework = {framework} "
        f"{COLUMNS} LABEL bought {into}"
    )


def test_only_rows_that_were_trained_are_in_the_archive(session: Session, tmp_path: Path) -> None:
    found = archive(session, "shop", tmp_path)
    weights = found.weights()
    tables = {name for name in weights if ":" in name}
    names = ("f1_embedding", "f1_weights")
    assert tables == {f"{name}:{part}" for name in names for part in ("ids", "rows", "seed")}
    assert 200 < len(weights["f1_embedding:ids"]) <= 211 + 53
    numbers = sum(value.size for name, value in weights.items() if not name.endswith((":ids", ":seed")))
    assert found.parameters() == numbers


def test_the_same_statement_gives_the_same_rows_bit_for_bit(session: Session, tmp_path: Path) -> None:
    framework = archive(session, "shop", tmp_path).spec.framework
    run(session, train(framework, "INTO again"))
    one, other = (archive(session, name, tmp_path).weights() for name in ("shop", "again"))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_what_was_learned_is_there_when_it_is_used(session: Session) -> None:
    [measured] = run(session, "SELECT * FROM visits TO EVALUATE shop LABEL bought")
    assert measured.figures is not None
    accuracy = measured.figures["accuracy"]
    assert accuracy is not None and accuracy > 0.9
    [predicted] = run(session, "SELECT * FROM visits TO PREDICT USING shop")
    table = predicted.to_arrow()
    assert len(table) == 1500
    assert accuracy == pytest.approx(
        np.mean([a == b for a, b in zip(table["bought"].to_pylist(), labels(session), strict=True)]), abs=1e-6
    )


def labels(session: Session) -> list[int]:
    [rows] = run(session, "SELECT bought FROM visits")
    found: list[int] = rows.to_arrow()["bought"].to_pylist()
    return found


def test_ids_that_were_never_trained_are_predicted_alike_every_time(session: Session) -> None:
    columns = []
    for _ in range(2):
        [result] = run(session, f"{NEW} TO PREDICT USING shop")
        columns.append(result.to_arrow()["bought_prob"].to_pylist())
    assert columns[0] == columns[1]
    assert len(set(columns[0])) > 30


def test_training_goes_on_from_the_rows_of_a_model(session: Session, tmp_path: Path) -> None:
    run(
        session,
        "SELECT * FROM visits WHERE seconds < 5 TO TRAIN DeepFMClassifier WITH epochs = 1, lr = 0 "
        "LABEL bought USING shop INTO still",
    )
    parent, child = (archive(session, name, tmp_path).weights() for name in ("shop", "still"))
    assert set(parent["f1_embedding:ids"]) == set(child["f1_embedding:ids"])
    assert np.array_equal(parent["f1_embedding:rows"], child["f1_embedding:rows"])
