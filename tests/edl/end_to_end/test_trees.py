"""Trees with a worker and a master, of which one dies: the model equals the model of an undisturbed job."""

from __future__ import annotations

from typing import Any

import pytest

from edl.jobs.events import Tally
from edl.models.archive import read_archive
from edl.spec import Checkpoints
from tests.edl.end_to_end.distributed import Job, kill, table
from tests.edl.end_to_end.test_training import same

ROUNDS = 20
DRAWS = {  # rows at random, so that a random state lost with a process would show
    "lightgbm": "seed=0, bagging_fraction=0.7, bagging_freq=1",
    "xgboost": "seed=0, subsample=0.7",
}
POINTS = [
    ("lightgbm", "worker-0/0 while writing a checkpoint 2"),
    *(
        pytest.param(*variant, marks=pytest.mark.soak)
        for variant in (
            ("lightgbm", "worker-0/0 after report 7"),
            ("lightgbm", "master/1 before durable 4"),
            ("xgboost", "master/1 before durable 4"),
            ("xgboost", "worker-0/0 while writing a checkpoint 2"),
            ("xgboost", "worker-0/0 after report 7"),
        )
    ),
]


def has_the_trees_of(job: Job, other: Job) -> bool:
    """Return whether the trees are the same bit for bit; a booster that is read again adds up rounded gains."""
    found, expected = (dict(read_archive(each.archive).weights()) for each in (job, other))
    gain, wanted = found.pop("gain"), expected.pop("gain")
    return same(found, expected) and list(gain) == pytest.approx(list(wanted), rel=1e-5)


@pytest.mark.parametrize(("framework", "point"), POINTS)
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
    assert [event for event in job.events if isinstance(event, Tally)][-1].relaunches == 1, job.logs()
    assert (outcome.steps, outcome.epochs) == (expected.steps, expected.epochs) == (ROUNDS, ROUNDS), (
        job.logs()
    )
    assert [row.metrics["loss"] for row in outcome.curve] == pytest.approx(
        [row.metrics["loss"] for row in expected.curve], rel=1e-9
    )
    assert has_the_trees_of(job, alone), job.logs()
