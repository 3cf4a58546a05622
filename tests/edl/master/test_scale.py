"""Jobs of thousands of workers: the master's work for each of them, in simulated time."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scale import exchange_secs
from edl.master.pace import FEW, Pace
from edl.master.tasks.task_manager import HEARTBEATS, TaskManager
from edl.tasks.job_state import Plan
from edl.tasks.ranges import STREAMED_ROWS
from tests.edl.master.simulated import MODES, Setting, SimulatedJob, job_spec


def test_a_pass_over_many_instances_is_rare() -> None:
    pace = Pace(1e-4)
    assert pace.is_due(5.0, 10_000)
    assert not pace.is_due(5.9, 10_000)
    assert pace.wait(5.9, 10_000) == pytest.approx(0.1)
    assert pace.is_due(6.0, 10_000)
    assert pace.is_due(6.0, FEW)


def test_workers_of_a_large_job_are_heard_rarely_and_given_up_later() -> None:
    tasks = TaskManager(Plan("predict", STREAMED_ROWS), lease_secs=10.0)
    tasks.want(20 * HEARTBEATS)
    joined = tasks.join("worker-0", 0, 0.0)
    assert joined is not None
    assert (joined.heartbeat_secs, joined.lease_secs) == (20.0, 60.0)
    tasks.want(2)  # who has joined keeps that interval
    tasks.tick(0.0)
    for second in range(1, 60):
        tasks.tick(float(second))
    assert tasks.state.is_alive("worker-0", 0)
    for second in range(60, 62):
        tasks.tick(float(second))
    assert not tasks.state.is_alive("worker-0", 0)


@pytest.mark.soak
@pytest.mark.parametrize(
    "mode", ["predict", *(pytest.param(mode, marks=pytest.mark.soak) for mode in ("async", "allreduce"))]
)
def test_a_job_ends_though_workers_die_and_fall_silent(mode: str, tmp_path: Path) -> None:
    setting = Setting(20, speed=10_000.0, death_secs=1.0, freeze_secs=7.0, start_secs=0.5, later_secs=3.0)
    course = SimulatedJob(job_spec(mode, 2_000_000, 15), tmp_path, setting).run(300.0)
    assert course.finished
    assert course.deaths > 5
    assert mode == "predict" or course.rows == 2_000_000


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
def test_ten_thousand_workers_cost_the_master_less_than_their_calls(mode: str, tmp_path: Path) -> None:
    setting, seconds = Setting(10_000), 120.0
    if mode == "allreduce":  # each death costs a new group
        setting, seconds = Setting(10_000, death_secs=200.0, freeze_secs=0.0), 240.0
    course = SimulatedJob(job_spec(mode, 10**9, 9_000), tmp_path, setting).run(seconds)
    assert course.cores < course.rate * exchange_secs()  # `benchmarks.scale` has the cores of an idle machine
