"""One remote worker trains end to end, whoever dies on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.errors import JobError, SQLFlowError
from edl.jobs.events import EpochEnd, Tally
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.models.archive import read_archive
from edl.spec import Checkpoints
from tests.edl import curves
from tests.edl.end_to_end.distributed import Event, Job, kill, table
from tests.edl.end_to_end.slow import SlowJob, started_again

CUT_OFTEN = {"checkpoints": Checkpoints(steps=10, secs=0)}


def weights(job: Job) -> dict[str, np.ndarray]:
    return dict(read_archive(job.archive).weights())


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


ORDERS = [
    ("master/1 after durable 3", "worker-0/0 after report 6"),
    *(
        pytest.param(orders, marks=pytest.mark.soak)
        for orders in (
            (),
            ("worker-0/0 in a task 3", "worker-0/1 after report 1"),
            ("worker-0/0 while writing a checkpoint 2",),
            ("worker-0/0 after metrics 2",),
            ("master/1 before durable 4",),
        )
    ),
]


@pytest.mark.parametrize("orders", ORDERS, ids=" and ".join)
def test_a1_a5_a_remote_worker_trains_what_one_process_trains_bit_for_bit_whoever_dies(
    orders: tuple[str, ...],
) -> None:
    options: dict[str, Any] = {"validation": 2000, "epochs": 2, "batch_size": 256}
    here = Job(table(30_000), **options)
    there = SlowJob(table(30_000), seconds=0.02, how=kill(*orders), spec=CUT_OFTEN, **options)
    if not orders:
        there.hurry()
    outcome = there.run_until(started_again(1))
    trained_alike(there, outcome, here, here.run_here())
    tally = [event for event in there.events if isinstance(event, Tally)][-1]
    assert (tally.relaunches >= 1) == bool(orders), there.logs()


@pytest.mark.soak
def test_a_remote_worker_trains_with_keras_what_one_process_trains() -> None:
    options: dict[str, Any] = {"framework": "keras", "validation": 2000, "epochs": 2, "batch_size": 256}
    here, there = Job(table(20_000), **options), Job(table(20_000), **options)
    trained_alike(there, there.run(), here, here.run_here())


def trained_alike(there: Job, found: Outcome, here: Job, expected: Outcome) -> None:
    """Both jobs have the same weights and figures, and the first one's curves show them."""
    assert same(weights(there), weights(here))
    assert (found.rows, found.steps, found.epochs) == (expected.rows, expected.steps, expected.epochs)
    assert found.figures == expected.figures
    told = {event.epoch: event for event in there.events if isinstance(event, EpochEnd)}  # or told again
    assert list(told.values()) == list(found.curve)
    drawn = curves.read(there.folder.tensorboard)
    assert drawn["epoch/loss"] == [(end.step, pytest.approx(end.loss)) for end in found.curve]
    assert [value for _, value in drawn["validation/loss"]] == [
        pytest.approx(end.metrics["loss"]) for end in found.curve
    ]
    for points in drawn.values():
        steps = [step for step, _ in points]
        assert steps == sorted(steps)
        assert steps[-1] == found.steps


@pytest.mark.soak
def test_a3_a_task_that_always_raises_fails_the_job_and_is_named(tmp_path: Path) -> None:
    bad = table(30_000)
    bad = bad.set_column(1, "y", [[None if row == 20_000 else 1.0 for row in range(30_000)]])
    job = Job(bad, shuffle=False, batch_size=256)
    with pytest.raises(
        SQLFlowError, match=r"the train task of the rows \[16,384, 24,576\) failed 3 times"
    ) as caught:
        job.run()
    assert "label y is NULL" in caught.value.message
    assert not job.archive.exists()


@pytest.mark.soak
def test_a_loss_that_is_no_number_fails_the_job_at_once() -> None:
    job = Job(
        table(1000),
        batch_size=10,
        epochs=50,
        replace={"torch.optim.Adam(parameters, lr, fused=True)": "torch.optim.SGD(parameters, 1e9)"},
    )
    with pytest.raises(JobError, match=r"the loss became (nan|inf) at step \d+"):
        job.run()


def test_a_program_that_cannot_be_loaded_fails_the_job_with_its_line() -> None:
    job = Job(table(100), framework="lightgbm", append="\n\nraise RuntimeError('no')\n")
    with pytest.raises(JobError, match=r"model\.py:\d+.*RuntimeError: no"):
        job.run()


@pytest.mark.soak
def test_a_job_that_is_cancelled_leaves_no_archive() -> None:
    job = Job(table(50_000), epochs=100_000, batch_size=256)
    with job.start() as running:

        def cancel(event: Event) -> None:
            if isinstance(event, EpochEnd):
                running.cancel()

        with pytest.raises(JobCancelledError):
            running.follow(cancel)
    assert not job.archive.exists()
