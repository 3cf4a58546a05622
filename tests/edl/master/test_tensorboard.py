"""The curves of a job, as TensorBoard reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.jobs.events import EpochEnd
from edl.jobs.snapshot import Row, Snapshot
from edl.master.reporting import event_files
from edl.master.reporting.tensorboard import Curves, learning_rate
from edl.master.state import Checkpoint, MasterState
from edl.master.tasks.task_manager import TaskManager
from edl.spec import Component, JobSpec, RegressionLabel, Rows
from edl.spec.job import Cluster
from edl.tasks import encoding
from edl.tasks.job_state import JobState, Plan
from edl.tasks.ranges import LEAST_ROWS
from tests.edl import programs
from tests.edl.curves import read

PLAN = Plan("train", 4 * LEAST_ROWS)
RATE = 0.25


def spec(**changes: Any) -> JobSpec:
    made = programs.job_spec("torch", (), RegressionLabel("y"), Rows(True, 4, 4, 0))
    adam = Component("adam", {"learning_rate": RATE})
    return msgspec.structs.replace(made, **{"optimizer": adam, **changes})


class Running:
    """A job that trains, and its curves."""

    def __init__(self, folder: Path, kept: MasterState | None = None) -> None:
        self.notes: list[str] = []
        self.leases = TaskManager(PLAN, kept, log=self.notes.append)
        self.curves = Curves(spec(), folder, self.leases)

    def train(self, step: int, loss: float, rate: float = 100.0) -> None:
        """Up to a step, each of two rows with this loss; then look."""
        self.advance(step, loss)
        self.look(rate)

    def advance(self, step: int, loss: float) -> None:
        state = self.leases.job.state
        weight = 2.0 * (step - state.step)
        state.loss, state.weight, state.step = state.loss + loss * weight, state.weight + weight, step

    def look(self, rate: float = 100.0) -> None:
        workers = [Row(f"worker-{i}", "worker", 0, state) for i, state in enumerate(("running", "ended"))]
        kept, state = self.leases.state, self.leases.job.state
        self.curves.point(
            Snapshot("", "", instances=(*workers,), step=state.step, generation=kept.generation, rate=rate)
        )

    def conclude(self, row: EpochEnd) -> None:
        self.leases.job.state.curve.add(row)
        self.curves.epoch_end(row)

    def to_state(self) -> MasterState:
        """Content of the state store."""
        return encoding.decode(encoding.encode(self.leases.to_store()[0]), MasterState)


def test_a_point_has_the_loss_of_what_was_trained_since_the_one_before(tmp_path: Path) -> None:
    job = Running(tmp_path)
    job.train(10, 8.0)
    job.look(rate=7.0)  # it did not get on
    job.train(30, 1.5)
    job.curves.close()
    assert read(tmp_path) == {
        "train/loss": [(10, 8.0), (30, 1.5)],
        "train/learning_rate": [(10, RATE), (30, RATE)],
        "job/rows_per_second": [(10, 100.0), (30, 100.0)],
        "job/workers": [(10, 1.0), (30, 1.0)],
    }


def test_metrics_are_told_at_the_ends_of_epochs_and_of_rounds(tmp_path: Path) -> None:
    job = Running(tmp_path)
    job.conclude(EpochEnd(1, 5, 0.5, {"loss": 0.75, "auc": None}, 1.0, final=False))
    job.conclude(EpochEnd(1, 9, 0.25, {"loss": 0.5, "auc": 1.0}, 2.0))
    job.curves.close()
    assert read(tmp_path) == {
        "epoch/loss": [(9, 0.25)],
        "validation/loss": [(5, 0.75), (9, 0.5)],
        "validation/auc": [(9, 1.0)],
    }


def test_a_job_that_goes_back_takes_its_curves_along(tmp_path: Path) -> None:
    job = Running(tmp_path)
    job.train(10, 3.0)
    job.conclude(EpochEnd(1, 10, 0.5, {}, 1.0))
    job.leases.state.checkpoint = Checkpoint("10", job.to_state().job or JobState())
    job.train(20, 2.0)
    job.conclude(EpochEnd(2, 20, 0.25, {}, 2.0))
    job.leases.go_back()
    job.train(15, 1.0)
    job.train(25, 0.5)
    job.curves.close()
    found = read(tmp_path)
    assert (found["train/loss"], found["epoch/loss"]) == ([(10, 3.0), (15, 1.0), (25, 0.5)], [(10, 0.5)])


def test_a_job_that_goes_back_to_where_nobody_looked_yet_tells_of_it(tmp_path: Path) -> None:
    job = Running(tmp_path)
    job.train(10, 3.0)
    job.advance(20, 1.0)
    job.leases.state.checkpoint = Checkpoint("20", job.to_state().job or JobState())
    job.conclude(EpochEnd(1, 25, 0.5, {}, 1.0))
    job.leases.go_back()
    job.look()
    job.conclude(EpochEnd(1, 25, 0.25, {}, 1.0))
    job.curves.close()
    found = read(tmp_path)
    assert (found["train/loss"], found["epoch/loss"]) == ([(10, 3.0), (20, 1.0)], [(25, 0.25)])


def test_a_job_that_goes_back_and_writes_its_next_checkpoint_before_anybody_looks_loses_no_point(
    tmp_path: Path,
) -> None:
    job = Running(tmp_path)
    job.train(10, 3.0)
    job.leases.state.checkpoint = Checkpoint("10", job.to_state().job or JobState())
    job.train(20, 2.0)
    for step in (15, 30):
        job.leases.go_back()
        job.advance(step, 1.0)
        job.leases.state.checkpoint = Checkpoint(str(step), job.to_state().job or JobState())
    job.conclude(EpochEnd(1, 30, 0.5, {}, 1.0))
    job.look()
    job.curves.close()
    found = read(tmp_path)
    assert (found["train/loss"], found["epoch/loss"]) == ([(10, 3.0), (30, 1.0)], [(30, 0.5)])


def test_the_next_master_goes_on_from_its_state_store(tmp_path: Path) -> None:
    first = Running(tmp_path)
    first.train(10, 3.0)
    first.train(20, 2.0)
    first.conclude(EpochEnd(1, 20, 0.5, {}, 1.0))
    kept = first.to_state()
    for step in (30, 40):
        first.train(step, 1.0)
    first.curves.close()
    later = Running(tmp_path, kept)
    later.look()
    later.train(35, 0.5)
    later.curves.close()
    found = read(tmp_path)
    assert found["train/loss"] == [(10, 3.0), (20, 2.0), (35, 0.5)]
    assert set(found["epoch/loss"]) == {(20, 0.5)}


def test_a_job_that_goes_back_to_where_it_is_keeps_what_it_told(tmp_path: Path) -> None:
    job = Running(tmp_path)
    job.train(10, 3.0)
    job.leases.state.checkpoint = Checkpoint("10", job.to_state().job or JobState())
    job.look()
    job.conclude(EpochEnd(1, 10, 0.5, {}, 1.0))
    job.leases.go_back()
    job.look()
    job.conclude(EpochEnd(1, 10, 0.5, {}, 1.0))
    job.curves.close()
    found = read(tmp_path)
    assert (found["train/loss"], found["epoch/loss"]) == ([(10, 3.0)], [(10, 0.5)])


def test_a_full_disk_is_noted_once_and_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Running(tmp_path)
    job.train(1, 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(event_files.os, "write", lambda descriptor, data: len(data) // 2)
        job.train(2, 1.0)
    job.train(3, 1.0)
    job.curves.close()
    assert job.notes == [
        "the curves of the job are no longer written: only a part of an event could be written"
    ]
    assert read(tmp_path)["train/loss"] == [(1, 1.0)]


def test_a_folder_that_cannot_be_made_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    job = Running(tmp_path / "file")
    job.train(1, 1.0)
    assert len(job.notes) == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, RATE),
        ({"schedule": Component("linear", {"decay_steps": 8, "end": 0.0, "warmup_steps": 0})}, RATE / 2),
        (
            {
                "schedule": Component("linear", {"decay_steps": 8, "end": 0.0, "warmup_steps": 0}),
                "cluster": Cluster(3, 1, "sync", grads_to_wait=2),
            },
            RATE * 3 / 4,
        ),
        ({"edited": True}, None),
        ({"kind": "predict"}, None),
    ],
    ids=["as it is", "by a schedule", "by the rounds of sync", "of a program of one's own", "of no training"],
)
def test_the_learning_rate_is_told_where_it_is_known(changes: dict[str, Any], expected: float | None) -> None:
    assert learning_rate(spec(**changes), TaskManager(PLAN), 4) == expected


def test_the_learning_rate_of_a_callback_goes_before_all_others() -> None:
    leases = TaskManager(PLAN)
    leases.job.state.rate = (3, 0.125)
    assert learning_rate(spec(edited=True), leases, 4) == 0.125
