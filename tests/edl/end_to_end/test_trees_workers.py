"""Trees that several workers grow together, of which one dies, or the master: no tree is another one."""

from __future__ import annotations

from typing import Any

import pytest

from edl.jobs.events import Tally
from edl.jobs.outcome import Outcome
from edl.models.archive import read_archive
from edl.spec import Checkpoints, Cluster
from tests.edl.end_to_end.distributed import Job, kill, table

ROUNDS, WORKERS = 20, 2
DRAWS = {
    "plain": "seed=0",
    "plain, XGBoost": "seed=0",
    "rows at random": "seed=0, bagging_fraction=0.7, bagging_freq=1",
    "rows at random, XGBoost": "seed=0, subsample=0.7",
}
POINTS = [
    ("rows at random", "worker-1/0 in an exchange 70"),
    ("rows at random", "worker-0/0 after report 7;worker-1/0 in an exchange 90"),
    ("rows at random", "master/1 before durable 4"),
    ("plain", "worker-0/0 in an exchange 70"),
    ("plain", "any/0 while writing a checkpoint 2"),
    ("plain", "worker-1/0 after metrics 1"),
    ("rows at random, XGBoost", "worker-1/0 in a collective call 9"),
    ("rows at random, XGBoost", "worker-0/0 in a collective call 7;worker-1/0 in a collective call 12"),
    ("rows at random, XGBoost", "master/1 before durable 4"),
]


def job(draws: str, **more: Any) -> Job:
    library = "xgboost" if "XGBoost" in draws else "lightgbm"
    spec = {
        "cluster": Cluster(workers=WORKERS, strategy="allreduce"),
        "checkpoints": Checkpoints(steps=5, secs=0),
    }
    return Job(
        table(1500),
        framework=library,
        validation=300,
        epochs=ROUNDS,
        keep="best",
        replace={"seed=0": DRAWS[draws]},
        **{"spec": spec, **more},
    )


def model(subject: Job) -> bytes:
    return bytes(read_archive(subject.archive).weights()["booster"].tobytes())


def losses(outcome: Outcome) -> list[float]:
    return [row.loss for row in outcome.curve if row.loss is not None]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("draws", "point", "nearness"),
    [
        ("plain", "worker-1/0 in an exchange 70", 1e-6),
        pytest.param("plain, XGBoost", "worker-0/0 in a collective call 7", 1e-3, marks=pytest.mark.soak),
    ],
)
def test_two_workers_of_which_one_is_killed_report_the_losses_of_one(
    draws: str, point: str, nearness: float
) -> None:
    expected = job(draws, spec={}).run_here()
    subject = job(draws, how=kill(point))
    outcome = subject.run()
    assert relaunches(subject) == 1, subject.logs()
    assert (outcome.rows, outcome.steps) == (expected.rows, expected.steps)
    assert losses(outcome) == pytest.approx(losses(expected), rel=nearness)
    for row, other in zip(outcome.curve, expected.curve, strict=True):
        assert row.metrics == pytest.approx(other.metrics, rel=nearness)


@pytest.mark.soak
@pytest.mark.parametrize(("draws", "point"), POINTS)
def test_a_death_changes_no_tree_of_several_workers(draws: str, point: str) -> None:
    undisturbed, subject = job(draws), job(draws, how=kill(point))
    expected, outcome = undisturbed.run(), subject.run()
    assert relaunches(subject) >= 1, subject.logs()
    assert (outcome.steps, outcome.epochs) == (expected.steps, expected.epochs) == (ROUNDS, ROUNDS)
    assert losses(outcome) == losses(expected)
    assert model(subject) == model(undisturbed), subject.logs()


def relaunches(subject: Job) -> int:
    return [event for event in subject.events if isinstance(event, Tally)][-1].relaunches
