"""The fault matrix on real processes, in jobs with parameter servers."""

from __future__ import annotations

import contextlib
import threading
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from edl.errors import ClusterError
from edl.jobs.events import Tally
from edl.jobs.snapshot import read_snapshot
from edl.ps import partitioning
from edl.ps.channel import ServerChannel
from edl.ps.checkpoint import manifests
from edl.ps.checkpoint.content import Version
from edl.ps.messages import Figures, Status
from edl.spec import Checkpoints, Cluster
from edl.testing import NO_ROOM
from tests.edl.end_to_end import counting
from tests.edl.end_to_end.distributed import Event, Job, kill
from tests.edl.end_to_end.slow import SlowJob, started_again

ROWS, EPOCHS, BATCH, MINIBATCHES = 4096, 2, counting.BATCH, 8
STEPS = EPOCHS * ROWS // BATCH
TASKS = STEPS // MINIBATCHES
OFTEN = Checkpoints(steps=5, secs=0)
MODES = pytest.mark.parametrize("mode", ["async", pytest.param("sync", marks=pytest.mark.soak)])


def job(
    mode: str, *orders: str, workers: int = 1, servers: int = 2, when: Checkpoints = OFTEN, **more: Any
) -> SlowJob:
    """more: of its `Cluster`."""
    waits = {"grads_to_wait": workers} if mode == "sync" else {}
    cluster = Cluster(workers, servers, mode, **{**waits, **more})  # type: ignore[arg-type]
    return SlowJob(
        counting.data(ROWS),
        seconds=0.2,
        epochs=EPOCHS,
        minibatches_per_task=MINIBATCHES,
        how=kill(*orders, master_arguments=("--lease-secs", "2")),
        **counting.program(cluster=cluster, checkpoints=when),
    )


def trained_once(of: Job) -> None:
    """Every row is in the parameters once in each epoch, and every step on each of two servers."""
    found = counting.counts(of)
    assert set(found.rows.tolist()) == {EPOCHS}, of.logs()
    assert (len(found.ids), found.steps) == (ROWS, (STEPS, STEPS)), of.logs()


def tally(of: Job) -> Tally:
    return [event for event in of.events if isinstance(event, Tally)][-1]


def notes(of: Job) -> str:
    return (of.folder.logs / "master.log").read_text()


class Watch:
    """Asks the servers of a running job for their versions, as a client of theirs, whoever they are, and its master for
    its figures, as Prometheus does."""

    def __init__(self, of: Job) -> None:
        self._job = of
        self._over = threading.Event()
        self.versions: defaultdict[str, list[Version]] = defaultdict(list)
        self.figures: set[str] = set()  # lines that the master has told

    @property
    def generations(self) -> set[int]:
        return {version.generation for versions in self.versions.values() for version in versions}

    def has_told(self, beginnings: Iterable[str]) -> bool:
        """Whether lines that begin so were among the figures."""
        figures = [*self.figures]
        return all(any(line.startswith(wanted) for line in figures) for wanted in beginnings)

    def run(self) -> None:
        while not self._over.wait(0.05):
            self._scrape()
            snapshot = read_snapshot(self._job.cluster.snapshot)
            for row in snapshot.instances if snapshot else ():
                if row.role == "ps" and row.address and row.state == "running":
                    self._ask(row.name, row.address)

    def _scrape(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # it is not there yet, or any more
            address = f"http://{self._job.cluster.metrics()}/metrics"
            with urllib.request.urlopen(address, timeout=10) as answer:
                self.figures.update(answer.read().decode().splitlines())

    def _ask(self, name: str, address: str) -> None:
        with ServerChannel(address, self._job.cluster.token()) as channel:
            try:
                figures, _ = channel.call(Status(), (), Figures, 1.0)
            except ClusterError:
                return
            if figures.index >= 0:
                self.versions[name].append(figures.version)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()


TOLD = (
    'edl_instances{role="worker",state="running"} 1.0',
    'edl_relaunches_total{role="ps"} 1.0',
    'edl_server_pushes_total{server="ps-1"} ',
    "edl_checkpoint_bytes ",
)


@pytest.mark.soak
@MODES
def test_a6_a_server_that_is_killed_is_replaced_and_no_version_goes_back(mode: str) -> None:
    subject = job(mode, "ps-1/0 while writing a shard 3")  # two are complete then
    watch = Watch(subject)
    wanted = {1} if mode == "async" else {1, 2}
    with watch.running():
        outcome = subject.run_until(lambda event: watch.has_told(TOLD) and watch.generations == wanted)
    assert (outcome.rows, tally(subject).relaunches) == (EPOCHS * ROWS, 1), subject.logs()
    assert "ps-1 killed" in notes(subject)
    if mode == "async":  # at least those between its last complete checkpoint and the one that it died in
        assert outcome.lost_updates >= 5
        assert outcome.lost_rows == BATCH * outcome.lost_updates
        assert any("train.checkpoint_secs" in note for note in outcome.notes)
        lacks_what_was_lost(subject, outcome.lost_updates)
    else:
        assert (outcome.lost_updates, outcome.notes) == (0, ())
        trained_once(subject)
    for versions in watch.versions.values():
        assert versions == sorted(versions)
    assert watch.has_told(TOLD)
    assert watch.generations == wanted


def lacks_what_was_lost(of: Job, updates: int) -> None:
    """Server 1 lacks these updates, and its rows lack the updates of their minibatches; server 0 has all."""
    found = counting.counts(of)
    assert found.steps == (STEPS, STEPS - updates)
    on_second = partitioning.owned_mask(found.ids, 1, 2)
    assert set(found.rows[~on_second].tolist()) == {EPOCHS}
    missing = EPOCHS - found.rows[on_second]
    assert missing.min() >= 0
    assert 0 < missing.sum() < BATCH * updates


@pytest.mark.soak  # a change of servers is followed with logs, too
@pytest.mark.parametrize("local_steps", [1, 4])
def test_a6_servers_that_log_updates_lose_none_of_them_when_they_are_killed(local_steps: int) -> None:
    """One dies before it logs a push, the other when it has applied one and before it answers."""
    orders = ("ps-1/0 while writing a shard 3", "ps-0/0 after a push 100", "ps-1/1 in a push 30")
    if local_steps > 1:
        orders = ("ps-1/0 while writing a shard 2", "ps-0/0 after a push 25", "ps-1/1 in a push 5")
    subject = job("async", *orders, durable_updates="process", local_steps=local_steps)
    watch = Watch(subject)
    with watch.running():
        outcome = subject.run_until(lambda event: "ps-1 killed" in notes(subject) and watch.has_told(TOLD))
    assert (outcome.rows, tally(subject).relaunches) == (EPOCHS * ROWS, 3), subject.logs()
    assert notes(subject).count("the updates since then are in its log") == 3
    assert (outcome.lost_updates, outcome.notes) == (0, ())
    found = counting.counts(subject)
    assert set(found.rows.tolist()) == {EPOCHS}, subject.logs()
    assert found.steps == (STEPS, STEPS)
    for versions in watch.versions.values():
        assert versions == sorted(versions)
    assert watch.generations == {1}


@pytest.mark.soak
@MODES
def test_the_number_of_servers_changes_and_every_update_counts_once_whoever_is_killed_meanwhile(
    mode: str,
) -> None:
    """The master dies when the last checkpoint of two servers is complete, and before it knows; then one of these
    servers, while the next one is written; then one of the three that follow.
    """
    orders = ("master/1 after the manifest 2", "ps-1/0 while writing a shard 3", "ps-2/0 in a push 9")
    more = {"durable_updates": "process"} if mode == "async" else {"grads_to_wait": 1}
    subject = job(mode, *orders, workers=2, when=Checkpoints(secs=0), **more)
    with subject.running():
        subject.until(lambda now: now.checkpoint and now.rows)
        subject.scale(servers=3)
        with pytest.raises(ClusterError, match="is changing from 2 to 3; wait until it has"):
            subject.scale(servers=4)
        subject.until(lambda now: now.servers == 3 and now.relaunches == 2)
        subject.scale(servers=1)
        subject.until(lambda now: now.servers == 1)
    outcome = subject.result()
    assert (outcome.rows, outcome.lost_updates) == (EPOCHS * ROWS, 0), subject.logs()
    for said in (
        "ps-1 killed",
        "parameter servers: ps-0, ps-1 → ps-0, ps-1, ps-2",
        "ps-2 killed",
        "parameter servers: ps-0, ps-1, ps-2 → ps-0",
    ):
        assert said in notes(subject)
    trained_once(subject)


@pytest.mark.soak
@MODES
def test_a6_a_server_that_is_killed_gets_its_shard_back_from_its_neighbour(mode: str) -> None:
    when = msgspec.structs.replace(OFTEN, copies="neighbours")
    subject = job(mode, "ps-1/0 while keeping a copy 3", "master/1 after durable 8", servers=3, when=when)
    outcome = subject.run_until(started_again(2))
    assert (outcome.rows, tally(subject).relaunches) == (EPOCHS * ROWS, 2), subject.logs()
    found = counting.counts(subject)
    if mode == "async":
        missing = EPOCHS - found.rows
        assert missing.min() >= 0
        assert missing.sum() <= outcome.lost_rows
    else:
        assert (set(found.rows.tolist()), found.steps[0]) == ({EPOCHS}, STEPS)
    assert ("; it resumes from the checkpoint" if mode == "async" else "resumes from step") in notes(subject)
    assert "training restarts" not in notes(subject)
    assert not list(subject.folder.checkpoints.glob("*"))


def test_a7_server_0_dies_and_the_tasks_of_worker_0_are_left_alone() -> None:
    subject = job("async", "ps-0/0 while writing a shard 3")
    outcome = subject.run_until(started_again(1))
    assert (outcome.rows, outcome.steps) == (EPOCHS * ROWS, STEPS), subject.logs()
    assert "resumes from the checkpoint" in notes(subject)
    assert "given back" not in notes(subject)
    assert tally(subject).relaunches == 1
    snapshot = read_snapshot(subject.cluster.snapshot)
    assert snapshot is not None
    assert snapshot.tasks["train"].done == TASKS  # none of them twice


@pytest.mark.soak
def test_a6_a_worker_takes_the_place_of_a_server_that_there_is_no_room_for() -> None:
    subject = job("async", "ps-1/0 while writing a shard 3", workers=2)
    more = {**subject.spec.environment, NO_ROOM: "ps-1/1"}
    subject.spec = msgspec.structs.replace(subject.spec, environment=more)

    def is_seated(event: Event) -> bool:
        now = read_snapshot(subject.cluster.snapshot)
        servers = [row for row in now.instances if row.name == "ps-1"] if now is not None else []
        return "takes its place" in notes(subject) and any(
            row.state == "running" and row.address for row in servers
        )

    outcome = subject.run_until(is_seated)
    assert (outcome.rows, outcome.steps) == (EPOCHS * ROWS, STEPS), subject.logs()
    assert "there is no room for ps-1: worker-1 takes its place" in notes(subject)
    snapshot = read_snapshot(subject.cluster.snapshot)
    assert snapshot is not None
    server = next(row for row in snapshot.instances if row.name == "ps-1")
    assert (server.role, server.incarnation, bool(server.address)) == ("ps", 0, True)


@pytest.mark.soak
def test_a6_the_only_server_takes_the_job_back_with_it() -> None:
    subject = job("async", "ps-0/0 after a push 30", servers=1)
    outcome = subject.run_until(started_again(1))
    assert (outcome.rows, outcome.steps) == (EPOCHS * ROWS, STEPS), subject.logs()
    trained_once(subject)
    assert "ps-0 killed" in notes(subject)
    assert "training " in notes(subject)  # begins anew, or resumes from a checkpoint


@pytest.mark.soak
@MODES
def test_a1_a_worker_that_is_killed_leaves_what_it_pushed_where_it_is(mode: str) -> None:
    subject = job(mode, "worker-0/0 in a task 3", "worker-1/0 before report 2", workers=2)
    outcome = subject.run_until(started_again(2))
    assert (outcome.rows, outcome.steps) == (EPOCHS * ROWS, STEPS), subject.logs()
    assert tally(subject).relaunches == 2


@pytest.mark.soak
def test_a9_a_worker_that_is_killed_between_its_two_pushes_leaves_no_half_of_a_gradient() -> None:
    subject = job("sync", "worker-1/0 between two pushes 12", workers=3, grads_to_wait=2)
    outcome = subject.run_until(started_again(1))
    assert (outcome.rows, outcome.steps) == (EPOCHS * ROWS, STEPS), subject.logs()
    assert tally(subject).relaunches == 1
    found = counting.counts(subject)
    rounds = found.steps[0]
    alone = 2 * rounds - STEPS  # rounds of one gradient, at the end of an epoch
    assert found.steps[1] == rounds
    assert alone <= EPOCHS
    # A row counts for one half in a round of two gradients.
    assert found.rows.min() >= EPOCHS / 2
    assert (2 * found.rows - EPOCHS).sum() == BATCH * alone


@pytest.mark.soak
def test_a10_local_steps_train_every_row_once() -> None:
    subject = job("async", "any/0 before report 2", workers=2, local_steps=4)
    outcome = subject.run_until(started_again(1))
    assert (outcome.rows, outcome.steps) == (EPOCHS * ROWS, STEPS), subject.logs()
    killed = tally(subject).relaunches
    assert killed in (1, 2)
    missing = EPOCHS - counting.counts(subject).rows
    assert missing.min() >= 0
    assert missing.sum() <= killed * 4 * BATCH  # of a push in flight, which one server may not have


@pytest.mark.soak
@MODES
def test_a5_masters_that_are_killed_cost_nothing(mode: str) -> None:
    orders = ("master/1 after durable 6", "master/2 before the manifest 1", "master/3 after the manifest 2")
    subject = job(mode, *orders)
    outcome = subject.run_until(started_again(3))
    assert (outcome.rows, outcome.steps) == (EPOCHS * ROWS, STEPS), subject.logs()
    assert tally(subject).relaunches == 3
    assert "ps-" not in notes(subject)


@pytest.mark.soak
def test_a15_a_server_that_is_killed_while_it_writes_a_cut_costs_that_cut() -> None:
    subject = job("sync", "ps-1/0 while writing a shard 2")
    outcome = subject.run_until(started_again(1))
    assert (outcome.rows, outcome.steps) == (EPOCHS * ROWS, STEPS), subject.logs()
    assert "training resumes from step" in notes(subject)
    assert "000001-000002" not in manifests.complete(subject.folder.checkpoints)


@pytest.mark.soak
@pytest.mark.parametrize("keep", [pytest.param(0, marks=pytest.mark.soak), 3])
def test_a13_so_many_cuts_are_kept(keep: int) -> None:
    subject = job("sync", when=msgspec.structs.replace(OFTEN, keep=keep))
    kept: list[int] = []

    def enough(event: object) -> bool:
        there = manifests.complete(subject.folder.checkpoints)
        kept.append(len(there))
        return max(there, default="") >= "000001-000006"

    subject.run_until(enough)
    enough(None)
    assert max(kept) <= kept[-1] + 1  # the oldest goes when the newest is known
    assert kept[-1] == 3 if keep else kept[-1] > 3, subject.logs()
