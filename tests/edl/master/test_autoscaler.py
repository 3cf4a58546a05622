"""Automatic number of workers: what it settles at, in simulated jobs whose throughput is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pytest

from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventReader
from edl.jobs.events import Tally
from edl.master.instances.autoscaler import GROW, SHRINK, Autoscaler, JobLook, WorkerDecision
from tests.edl.master.simulated import Setting, SimulatedJob, job_spec

MOST = 8
Throughput = Callable[[int], float]


@dataclass
class Job:
    """A job with noise in its rows, in which a worker needs some seconds to take part.

    `room` bounds the workers; a worker dies with the probability `deaths` in each second; of each epoch of `epoch`
    seconds a fifth is an evaluation.
    """

    throughput: Throughput
    workers: int = 2
    noise: float = 0.03
    room: int = 99
    deaths: float = 0.0
    epoch: int = 0
    seed: int = 0
    now: int = 0
    rows: float = 0.0
    decisions: list[WorkerDecision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.autoscaler = Autoscaler(self.workers, MOST)
        self.active, self.changed = self.workers, 0
        self.random = np.random.default_rng(self.seed)

    def run(self, seconds: int) -> int:
        for _ in range(seconds):
            self.now += 1
            self._move_workers()
            trains = not self.epoch or self.now % self.epoch < 0.8 * self.epoch
            if trains:
                self.rows += self.throughput(self.active) * self.random.normal(1, self.noise)
            has_room = self.workers <= self.room
            decision = self.autoscaler.observe(
                JobLook(float(self.now), int(self.rows), self.active, trains, has_room)
            )
            if decision is not None:
                self.decisions.append(decision)
                self.changed = self.now if decision.workers != self.workers else self.changed
                self.workers = decision.workers
        return self.settled

    @property
    def settled(self) -> int:
        """Result of the last trial that has ended."""
        ends = [decision.workers for decision in self.decisions if "trying" not in decision.reason]
        return ends[-1] if ends else self.workers

    def _move_workers(self) -> None:
        self.active = min(self.active, self.workers, self.room)
        if self.active < min(self.workers, self.room) and self.now >= self.changed + 8:
            self.active, self.changed = self.active + 1, self.now
        if self.active > 1 and self.random.random() < self.deaths:
            self.active, self.changed = self.active - 1, self.now


def saturating(knee: int) -> Throughput:
    return lambda workers: 100.0 * min(workers, knee)


def added_share(throughput: Throughput, workers: int) -> float:
    """Throughput that the last of so many workers adds, as a part of the others' mean."""
    fewer = throughput(workers - 1)
    return (throughput(workers) - fewer) / (fewer / (workers - 1))


@pytest.mark.parametrize("knee", range(1, MOST + 1))
def test_the_number_grows_and_shrinks_to_the_workers_that_are_of_use(knee: int) -> None:
    assert Job(saturating(knee)).run(1200) == knee
    assert Job(saturating(knee), workers=MOST).run(1200) == knee


@pytest.mark.parametrize("seed", range(20))
def test_drawn_jobs_settle_where_each_worker_adds_its_part(seed: int) -> None:
    random = np.random.default_rng(seed)
    serial, contention = random.uniform(0, 0.3), random.uniform(0, 0.05)

    def throughput(workers: int) -> float:
        return 500 * workers / (1 + serial * (workers - 1) + contention * workers * (workers - 1))

    job = Job(
        throughput,
        noise=0.02,
        deaths=float(random.choice([0.0, 0.002])),
        epoch=int(random.choice([0, 7, 100])),
        seed=seed,
    )
    chosen = job.run(4000)
    if chosen > 1:
        assert added_share(throughput, chosen) > SHRINK - 0.1
    if chosen < MOST:
        assert added_share(throughput, chosen + 1) < GROW + 0.1
    assert all(1 <= decision.workers <= MOST for decision in job.decisions)


def test_a_number_that_has_settled_is_tried_again_ever_more_rarely() -> None:
    job = Job(saturating(3))
    job.run(1800)
    before = len(job.decisions)
    assert job.run(7200) == 3
    assert len(job.decisions) - before <= 6


def test_a_job_that_gets_faster_workers_grows_again_and_one_that_gets_slower_shrinks() -> None:
    job = Job(saturating(2))
    assert job.run(600) == 2
    job.throughput = saturating(5)
    assert job.run(3600) == 5
    job.throughput = saturating(2)
    assert job.run(600) == 2
    assert any("seems to add less" in decision.reason for decision in job.decisions)


def test_a_job_whose_workers_all_get_slower_keeps_its_number() -> None:
    job = Job(saturating(4))
    assert job.run(600) == 4
    job.throughput = lambda workers: 20.0 * min(workers, 4)
    assert job.run(1200) == 4


def test_without_room_for_another_worker_the_trial_ends_and_says_so() -> None:
    job = Job(saturating(8), room=3)
    assert job.run(600) == 3
    assert any("worker 4 has no room for 21 s: back to 3" in decision.reason for decision in job.decisions)
    job.room = 5
    assert job.run(3600) == 5


def test_a_worker_that_never_comes_ends_its_trial() -> None:
    autoscaler = Autoscaler(2, MOST)
    decisions = []
    for now in range(300):
        decision = autoscaler.observe(JobLook(float(now), 100 * now, 2))
        decisions += [decision] if decision is not None else []
    assert [decision.workers for decision in decisions] == [3, 2]
    assert decisions[1].reason == "worker 3 has not come for 181 s: back to 2"


def test_rows_of_an_evaluation_and_of_too_few_workers_are_not_measured() -> None:
    autoscaler = Autoscaler(2, MOST)
    assert all(
        autoscaler.observe(JobLook(float(now), 50 * now, 2, trains=False)) is None for now in range(200)
    )
    assert all(autoscaler.observe(JobLook(float(now), 50 * now, 1)) is None for now in range(200, 400))


def test_reasons_name_figures_and_limits() -> None:
    job = Job(saturating(2), noise=0.0)
    job.run(60)
    assert [decision.reason for decision in job.decisions] == [
        "2 workers train 200 rows/s: trying 3",
        "3 workers train 200 rows/s, 2 train 200 rows/s: worker 3 adds 0% of its share, 60% are needed; back to 2",
    ]


def test_a_number_that_a_person_sets_is_where_it_goes_on() -> None:
    job = Job(saturating(8))
    job.run(200)
    job.autoscaler.set(2)
    job.workers = 2
    job.run(40)
    assert job.workers == 3


@pytest.mark.parametrize("mode", ["allreduce", pytest.param("async", marks=pytest.mark.soak)])
def test_the_master_of_a_job_starts_and_stops_workers_and_shows_why(tmp_path: Path, mode: str) -> None:
    """In simulated time: 16,000 rows/s are the most for all workers, 4,000 of each."""
    spec = job_spec(mode, 10**9, 2)
    spec = msgspec.structs.replace(spec, cluster=msgspec.structs.replace(spec.cluster, max_workers=8))
    setting = Setting(2, speed=4_000.0, most=16_000.0, death_secs=0.0, freeze_secs=0.0, later_secs=1e6)
    job = SimulatedJob(spec, tmp_path, setting)
    job.run(500.0)
    assert job.master.tasks.state.workers == 4
    with EventReader(ClusterFolder(tmp_path).events) as events:
        tallies = [event for event in events.read() if isinstance(event, Tally)]
    reasons = [*dict.fromkeys(tally.scaling for tally in tallies if tally.scaling)]
    assert "2 workers train" in reasons[0]
    assert any("worker 5 adds" in reason and "back to 4" in reason for reason in reasons)
