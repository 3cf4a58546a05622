"""What a master shows of instances that are cut off: to those who follow the job, and in its snapshot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edl.cluster import Change, Instance
from edl.jobs.events import Progress, Tally
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import ServerCounts, Staleness
from edl.master.backend import Backend, ClientResultStore
from edl.master.instances.instance_manager import InstanceManager
from edl.master.reporting.status import Obstacles, StatusReporter
from edl.master.reporting.tensorboard import Curves
from edl.master.tasks.task_manager import TaskManager
from edl.ps.messages import Figures
from edl.spec import Training
from edl.tasks.job_state import Plan
from edl.tasks.ranges import STREAMED_ROWS
from tests.edl.master.test_tensorboard import spec

AWAY = "does not reach worker-0 at 10.0.0.1:4000: it is away"


class Told:
    """Events of the job."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def write(self, event: Any) -> None:
        self.events.append(event)


class _Servers(SimpleNamespace):
    def __len__(self) -> int:
        return len(self.all_figures)


def test_the_updates_of_servers_are_in_the_snapshot_and_losses_in_the_outcome(tmp_path: Path) -> None:
    tasks = TaskManager(Plan("predict", 4 * STREAMED_ROWS))
    other: Any = None
    backend = Backend(other, other, other, ClientResultStore(), lambda snapshot: None, "")
    job = spec(kind="predict")
    counts = ServerCounts(7, staleness=Staleness(20, 20, 4, 1))
    figures = {"ps-0": Figures(), "ps-1": Figures()}
    servers: Any = _Servers(
        losses=(6, 384), torn=(1, 64), all_figures=figures, counts=counts, target_count=0, change_under_way=""
    )
    reporter = StatusReporter(
        job,
        tasks,
        InstanceManager(tasks, 0),
        backend,
        Curves(job, tmp_path, tasks),
        servers,
        Obstacles(other),
    )
    snapshot, end = reporter.snapshot(), reporter.outcome
    assert snapshot.counts == counts
    assert (snapshot.lost_updates, snapshot.lost_rows) == (6, 384)
    assert isinstance(end, Outcome)
    assert (end.lost_updates, end.lost_rows) == (6, 384)
    of_servers, of_workers = end.notes
    assert "had applied 5 updates of 320 rows" in of_servers
    assert "train.durable_updates keeps them" in of_servers
    assert "had pushed 1 update of 64 rows to some of the parameter servers only" in of_workers


def test_the_epoch_is_the_first_with_remaining_rows_though_tasks_are_assigned_ahead(tmp_path: Path) -> None:
    other: Any = None
    job = spec()
    tasks = TaskManager(Plan("train", 4, training=Training(epochs=3, batch_size=2)))
    while tasks.job.take("train"):
        pass
    backend = Backend(other, other, other, ClientResultStore(), lambda snapshot: None, "")
    reporter = StatusReporter(
        job,
        tasks,
        InstanceManager(tasks, 0),
        backend,
        Curves(job, tmp_path, tasks),
        None,
        Obstacles(other),
    )
    assert tasks.job.state.epoch > 1
    assert reporter.snapshot().epoch == 1


def test_instances_that_are_cut_off_are_counted_and_described(tmp_path: Path) -> None:
    tasks = TaskManager(Plan("predict", 4 * STREAMED_ROWS))
    instances = InstanceManager(tasks, 3)
    told: Any = Told()
    other: Any = None
    backend = Backend(other, other, told, ClientResultStore(), lambda snapshot: None, "")
    obstacles = Obstacles(lambda text: None)
    reporter = StatusReporter(
        spec(kind="predict"), tasks, instances, backend, Curves(spec(), tmp_path, tasks), None, obstacles
    )
    instances.actions(0.0)
    for name in ("worker-0", "worker-1", "worker-2"):
        instances.on_change(Change(Instance(name, "worker", 0), "running"), 0.0)
    for name in ("worker-1", "worker-2"):
        tasks.join(name, 0, 0.0)
    obstacles.on_heard("worker-1", 0, AWAY)
    for second in range(1, 33):
        instances.actions(float(second))
    reporter.publish(33.0)
    assert {row.name: row.note for row in reporter.snapshot().instances} == {
        "worker-0": "has not reached the master for 32 s; why: worker-0",
        "worker-1": AWAY,
        "worker-2": "",
    }
    [tally] = [event for event in told.events if isinstance(event, Tally)]
    assert (tally.instances, tally.cut_off) == (3, 2)


def test_the_rate_of_a_resumed_training_begins_with_its_first_new_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [5_000]
    monkeypatch.setattr("edl.master.reporting.status.progress.rows", lambda tasks: rows[0])
    tasks = TaskManager(Plan("predict", 40_000))
    told: Any = Told()
    other: Any = None
    backend = Backend(other, other, told, ClientResultStore(), lambda snapshot: None, "")
    instances, curves = InstanceManager(tasks, 0), Curves(spec(), tmp_path, tasks)
    reporter = StatusReporter(spec(kind="predict"), tasks, instances, backend, curves, None, Obstacles(other))
    for now, trained in ((0.0, 5_000), (20.0, 5_000), (30.0, 5_100), (31.0, 6_100)):
        rows[0] = trained
        reporter.publish(now)
    rates = [event.rows_per_second for event in told.events if isinstance(event, Progress)]
    assert rates == [0.0, 0.0, 1_000.0]
