"""TRAIN with parameter servers, from SQL to a model that predicts, in both frameworks and on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.models.archive import Archive, read_archive
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill, on_each

ROWS = 1500
VISITS = pa.table(
    {
        "who": [i * 7919 % 211 for i in range(ROWS)],
        "page": [i % 53 for i in range(ROWS)],
        "seconds": [float(i % 10) for i in range(ROWS)],
        "bought": [i * 7919 % 211 % 2 for i in range(ROWS)],
    }
)
SYNC = "train.strategy = sync, num_ps = 2"


def run(session: Session, text: str) -> list[Result]:
    return list(session.run(text))


def train(framework: str, more: str, into: str) -> str:
    settings = (
        "embedding_dim = 4, hidden_units = [8], epochs = 2, train.keep = best, batch_size = 64, lr = 0.01"
    )
    return (
        f"SELECT * FROM visits TO TRAIN DeepFMClassifier WITH {settings}, {more} model.framework = {framework} "
        "COLUMN seconds, EMBEDDING([CATEGORY_ID(who, 100000), CATEGORY_ID(page, 100000)], 4), CATEGORY_ID(who, 90000) "
        f"LABEL bought INTO {into}"
    )


def archive(session: Session, name: str, tmp_path: Path) -> Archive:
    session.registry.load(name, tmp_path / f"{name}.zip")
    return read_archive(tmp_path / f"{name}.zip")


@pytest.fixture(scope="module")
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with sqlflow_edl.connect(databases.url(request.param), create=True) as opened:
            fill(opened, "visits", VISITS)
            yield opened


@pytest.mark.soak  # the statement of docs/servers.md trains so, too
@pytest.mark.parametrize("framework", ["torch", "keras"])
@on_each("session", always=("duckdb",))
def test_a_worker_with_two_servers_in_sync_trains_what_one_process_trains(
    session: Session, framework: str, tmp_path: Path
) -> None:
    [alone] = run(session, train(framework, "", "alone"))
    [served] = run(session, train(framework, f"{SYNC},", "served"))
    here, there = (archive(session, name, tmp_path) for name in ("alone", "served"))
    expected, found = here.weights(), there.weights()
    assert found.keys() == expected.keys()
    assert {name for name in found if name.endswith(":ids")} == {"f1_embedding:ids", "f1_weights:ids"}
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-5, err_msg=name)
    assert [row["epoch"] for row in there.curve] == [row["epoch"] for row in here.curve]
    assert served.figures == pytest.approx(alone.figures, rel=1e-3)
    assert there.spec.cluster.parameter_servers == 2


@pytest.mark.soak
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("train.strategy = async,", id="async"),
        pytest.param("local_steps = 3,", id="local steps", marks=pytest.mark.soak),
        pytest.param("train.strategy = sync,", id="sync", marks=pytest.mark.soak),
    ],
)
@on_each("session", always=("mysql",))
def test_two_workers_learn_what_is_to_learn_and_their_model_predicts(session: Session, how: str) -> None:
    [trained] = run(session, train("torch", f"num_workers = 2, {how}", "ours"))
    assert trained.figures is not None
    [predicted] = run(session, "SELECT who, page, seconds FROM visits TO PREDICT USING ours")
    assert predicted.to_arrow().num_rows == ROWS
    [measured] = run(session, "SELECT * FROM visits TO EVALUATE ours")
    assert measured.to_arrow().num_rows == 1
