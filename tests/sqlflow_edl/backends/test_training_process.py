"""Training processes of a session: one for each framework, and which of them stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from edl.run.training_client import TrainingProcess
from sqlflow_edl.backends.submit import LocalSubmitter
from sqlflow_edl.session.session import Session
from tests.databases import fill

pytestmark = pytest.mark.usefixtures("own_processes")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[TrainingProcess]:
    """All processes that the test starts."""
    found: list[TrainingProcess] = []
    start = TrainingProcess.start

    def noted(*arguments: Any) -> TrainingProcess:
        found.append(start(*arguments))
        return found[-1]

    monkeypatch.setattr(TrainingProcess, "start", noted)
    return found


@pytest.fixture
def session() -> Iterator[Session]:
    with Session("duckdb:") as opened:
        fill(opened, "points", pa.table({"x": [0.0, 1.0, 2.0, 3.0] * 4, "y": [1.0, 3.0, 5.0, 7.0] * 4}))
        yield opened


@pytest.mark.soak
def test_the_process_of_a_framework_waits_for_its_next_statement(
    session: Session, started: list[TrainingProcess]
) -> None:
    for model in ("LGBMRegressor", "XGBRegressor", "LGBMRegressor", "XGBRegressor"):
        for _ in session.run(
            f"SELECT * FROM points TO TRAIN {model} WITH train.num_boost_round = 1 LABEL y INTO m"
        ):
            pass
    assert [each.framework for each in started] == ["lightgbm", "xgboost"]
    assert all(each.is_alive for each in started)
    session.close()
    assert not any(each.is_alive for each in started)


def test_a_process_that_has_run_nothing_ends_when_another_framework_is_wanted(
    started: list[TrainingProcess],
) -> None:
    submitter = LocalSubmitter()
    submitter.warm("lightgbm")
    submitter.warm("xgboost")
    assert [(each.framework, each.is_alive) for each in started] == [("lightgbm", False), ("xgboost", True)]
    submitter.close()
