"""Trees with a worker and a master, of which one dies: the model is that of a job that nothing happened to."""

from __future__ import annotations

from typing import Any

import pytest

from edl.models.archive import read_archive
from edl.spec import TREES, Checkpoints
from tests.edl.end_to_end.distributed import Job, kill, table

ROUNDS = 40
DRAWS = {  # rows at random, so that a random state lost with a process would show
    "lightgbm": "seed=0, bagging_fraction=0.7, bagging_freq=1",
    "xgboost": "seed=0, subsample=0.7",
}
POINTS = [
    "worker-0/0 while writing a checkpoint 2",
    "worker-0/0 after report 17",
    "master/1 before durable 4",
]


def model(job: Job) -> bytes:
    return bytes(read_archive(job.archive).weights()["booster"].tobytes())


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("framework", TREES)
def test_a_death_changes_no_tree(framework: str, point: str) -> None:
    options: dict[str, Any] = {
        "framework": framework,
        "validation": 300,
        "epochs": ROUNDS,
        "keep": "best",
        "replace": {"seed=0": DRAWS[framework]},
    }
    alone = Job(table(1500), **options)
    expected = alone.run_here()
    job = Job(table(1500), how=kill(point), spec={"checkpoints": Checkpoints(steps=5, secs=0)}, **options)
    outcome = job.run()
    assert (outcome.steps, outcome.epochs) == (expected.steps, expected.epochs) == (ROUNDS, ROUNDS), (
        job.logs()
    )
    assert [row.metrics["loss"] for row in outcome.curve] == pytest.approx(
        [row.metrics["loss"] for row in expected.curve], rel=1e-9
    )
    assert model(job) == model(alone), job.logs()
