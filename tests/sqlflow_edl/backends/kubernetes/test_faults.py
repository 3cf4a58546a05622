"""Rows of the fault matrix that need a cluster: pods of whole jobs find no room, are preempted, evicted and lost."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edl.data import Source, connect
from edl.data.server_url import SECRETS
from edl.entrypoints import parameter_server
from edl.jobs.snapshot import Snapshot
from edl.spec import Checkpoints
from edl.spec import Cluster as ClusterSpec
from edl.tasks.ranges import LEAST_ROWS
from tests.edl.end_to_end import counting
from tests.kubernetes.faults import Fault
from tests.kubernetes.process import api_server
from tests.mariadb import Server
from tests.sqlflow_edl.backends.kubernetes.in_pods import BATCH, Yard, make_table, relaunches, workers

ROWS = 2 * LEAST_ROWS
MORE = 5 * LEAST_ROWS  # where several workers take steps at the same time


@pytest.fixture(scope="module")
def source(mariadb: Server) -> Iterator[Source]:
    with pytest.MonkeyPatch.context() as patch, connect(mariadb.url()) as found:
        patch.setenv(SECRETS, os.environ[SECRETS])
        make_table(found, MORE)
        yield found


@pytest.fixture
def yard(source: Source, tmp_path: Path, kubeconfig: Callable[..., Path]) -> Iterator[Yard]:
    with api_server(tmp_path / "pods") as double:
        kubeconfig(double.url, double.administrator)
        yield Yard(double, source, tmp_path)


def group(workers: int) -> ClusterSpec:
    return ClusterSpec(workers, strategy="allreduce")


@pytest.mark.soak
def test_a18_a_job_trains_with_the_workers_there_is_room_for_be_it_none_for_a_while(yard: Yard) -> None:
    yard.double.capacity(cpu="1.5")
    job = yard.slow("a18", ROWS, group(3))
    job.until(job.trains(1, pending=2))
    yard.double.capacity(cpu="3.5")
    job.until(job.trains(3))
    yard.double.capacity(cpu="0.5")
    for number in range(3):
        job.evict(f"worker-{number}")
    job.until(lambda now: workers(now) == Counter(pending=3))
    yard.double.capacity(cpu="2.5")
    job.until(job.trains(2, pending=1))
    job.hurry()
    outcome = job.outcome()
    assert (outcome.rows, outcome.steps) == (ROWS, ROWS // BATCH)


@pytest.mark.soak
def test_an_automatic_number_of_workers_tries_a_third_pod_and_lets_it_go_again(yard: Yard) -> None:
    """Each worker takes half a second for a step, so a third one makes none faster."""
    cluster = ClusterSpec(2, strategy="allreduce", max_workers=3)
    job = yard.slow("automatic", MORE, cluster)
    job.until(lambda now: "2 workers train" in now.scaling and "trying 3" in now.scaling)
    job.until(job.trains(3))
    job.until(lambda now: "worker 3 adds" in now.scaling and now.scaling.endswith("back to 2"))
    job.hurry()
    assert job.outcome().rows == MORE
    assert "automatic number of workers: 2 workers train" in job.deployed.log()


@pytest.mark.soak
def test_a22_a_job_gives_room_to_a_more_urgent_one_and_takes_it_up_again(yard: Yard) -> None:
    yard.make_classes()
    yard.double.capacity(cpu="2.5")
    classes = {"priority_class": "high", "low_priority_class": "low"}
    low = yard.slow("low", ROWS, group(2), **classes, high_priority_fraction="0.5")
    low.until(low.trains(2))
    high = yard.slow("high", ROWS, group(1), **classes)
    high.until(high.trains(1))
    low.until(low.trains(1, pending=1))
    high.hurry()
    assert (high.outcome().rows, high.outcome().steps) == (ROWS, ROWS // BATCH)
    low.until(low.trains(2))
    assert "a pod of higher priority replaces it" in low.deployed.log()
    low.hurry()
    assert (low.outcome().rows, low.outcome().steps) == (ROWS, ROWS // BATCH)
    last = low.snapshot(), high.snapshot()
    assert [relaunches(now) for now in last if now] == [{"worker-1": 1}, {}]
    assert "resumes from" not in low.deployed.log()


@pytest.mark.soak
def test_a6_a_server_is_replaced_and_where_no_node_has_room_a_worker_takes_its_place(yard: Yard) -> None:
    when = Checkpoints(steps=10, secs=0)
    job = yard.slow("a6", MORE, ClusterSpec(2, 2, "async"), when, ps_cpu="0.2", pending_secs="1")
    job.until(lambda now: now.checkpoint)
    job.kill("ps-1")
    job.until(lambda now: relaunches(now) == {"ps-1": 1} and job.trains(2)(now))
    yard.double.capacity(cpu="2.3")
    job.kill("ps-0")
    job.until(lambda now: workers(now)["running"] == 1 and job.trains(1, workers(now)["pending"])(now))
    log = job.deployed.log()
    assert "ps-1" in log
    assert log.count("resumes from the checkpoint") >= 1
    assert "there is no room for ps-0: worker-1 takes its place" in log
    job.hurry()
    outcome = job.outcome()
    assert (outcome.rows, outcome.steps) == (MORE, MORE // BATCH)


@pytest.mark.soak
def test_servers_join_and_leave_a_drained_node_and_no_update_is_lost(yard: Yard) -> None:
    job = yard.slow("moved", MORE, ClusterSpec(2, 2, "async"), grace_secs="60", model=counting.DENSE)
    job.until(job.trains(2))
    job.wish(servers="3")
    job.until(lambda now: now.servers == 3 and job.trains(2)(now))
    job.wish(servers="2")
    job.until(lambda now: now.servers == 2 and job.trains(2)(now))
    job.evict("ps-0")
    job.until(lambda now: now.generation == 4 and job.trains(2)(now))
    job.until(lambda now: servers(now) == ["ps-1", "ps-3"])
    followed = time.monotonic()
    job.deployed.until(lambda: not job.has_pod("ps-0"))
    assert time.monotonic() - followed < parameter_server.SILENCE / 2
    job.hurry()
    outcome = job.outcome()
    assert (outcome.rows, outcome.steps, outcome.lost_updates) == (MORE, MORE // BATCH, 0)
    assert counting.steps(yard.weights("moved")) == (MORE // BATCH, MORE // BATCH)
    for said in (
        "→ ps-0, ps-1, ps-2",
        "ps-2 → ps-0, ps-1",
        "→ ps-1, ps-3",
        "ps-0 is to end: another server follows",
    ):
        assert said in job.deployed.log()


def servers(now: Snapshot) -> list[str]:
    """Those that run."""
    return [row.name for row in now.instances if row.role == "ps" and row.state == "running"]


@pytest.mark.soak
def test_a8_workers_that_vanish_while_the_api_server_is_deaf_are_found_by_listing_again(yard: Yard) -> None:
    job = yard.slow("a8", ROWS, group(4))
    job.until(job.trains(4))
    master = job.deployed.master()
    yard.double.go_wrong(Fault("drop", "GET .*/pods[?].*(watch=true|limit)", times=10**6))
    yard.double.cut_watches()
    for number in range(3):
        job.kill(f"worker-{number}")
    job.until(lambda now: len(now.members) == 1)
    job.until(lambda now: not any(row.incarnation for row in now.instances))  # the master has not heard why
    yard.double.compact()
    yard.double.go_wrong()
    job.until(job.trains(4))
    job.hurry()
    outcome = job.outcome()
    assert (outcome.rows, outcome.steps) == (ROWS, ROWS // BATCH)
    assert job.deployed.master() == master


@pytest.mark.soak
def test_a21_everything_happens_in_one_job_one_thing_after_another(yard: Yard) -> None:
    double = yard.double
    double.capacity(cpu="2.8")
    double.add_node("node-2", cpu="2.4", memory="64Gi", pods="10")
    cluster, when = ClusterSpec(3, 2, "async"), Checkpoints(steps=10, secs=0)
    job = yard.slow("a21", MORE, cluster, when, model=counting.DENSE)
    job.until(job.trains(3))
    job.until(lambda now: now.checkpoint)
    job.kill("worker-0")
    job.until(lambda now: relaunches(now).get("worker-0") == 1 and job.trains(3)(now))
    job.evict("worker-1")
    job.until(lambda now: relaunches(now).get("worker-1") == 1 and job.trains(3)(now))
    job.run_out_of_memory("worker-2")
    job.until(lambda now: relaunches(now).get("worker-2") == 1 and job.trains(3)(now))
    job.kill("ps-1")
    job.until(lambda now: relaunches(now).get("ps-1") == 1 and job.trains(3)(now))
    job.deployed.delete(job.deployed.master())
    job.until(lambda now: now.master_relaunches == 1 and job.trains(3)(now))
    assert "worker" in job.on_node("node-2")
    double.lose_node("node-2")
    double.remove_node("node-2")
    job.until(lambda now: job.trains(2, pending=1)(now))
    double.capacity(cpu="4")
    job.until(job.trains(3))
    job.hurry()
    outcome = job.outcome()
    steps = MORE // BATCH
    assert (outcome.rows, outcome.steps) == (MORE, steps)
    found = counting.steps(yard.weights("a21"))
    assert max(found) <= steps
    # Nobody knows what workers had pushed that died with a server, or between two pushes.
    assert 0 <= 2 * steps - sum(found) - outcome.lost_updates <= 40
