"""Pauses, resumptions and numbers of workers, as the Job of a play is told them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from edl.checkpoints.factory import VARIABLE
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.deployment import read_deployment, write_deployment
from edl.errors import ClusterError
from edl.jobs.snapshot import Snapshot
from edl.spec import Checkpoints, Cluster, to_json
from sqlflow_edl.backends.base import Numbers
from sqlflow_edl.backends.find import summaries
from sqlflow_edl.backends.report import report
from tests.sqlflow_edl.backends.kubernetes import jobs
from tests.sqlflow_edl.backends.kubernetes.play import Play

STARTED = "2026-01-01T00:00:00"


@pytest.fixture
def training(play: Play) -> Play:
    """With two workers, and checkpoints at its master."""
    return begun(play, jobs.with_workers(2))


def begun(play: Play, spec: Any, **environment: str) -> Play:
    """Start it, with this environment of its workers, and wait until its master runs."""
    play.start()
    play.wait_for_master()
    (play.folder.program / "job.json").write_bytes(to_json(spec))
    found = read_deployment(play.folder.path)
    assert found is not None
    env = [{"name": name, "value": value} for name, value in environment.items()]
    worker = {"spec": {"containers": [{"name": "worker", "env": env}]}}
    write_deployment(play.folder.path, msgspec.structs.replace(found, worker=worker))
    return play


def job(play: Play) -> dict[str, Any]:
    found: dict[str, Any] = play.cluster.ask(
        "GET", f"/apis/batch/v1/namespaces/{play.namespace}/jobs/{play.name}"
    )
    return found


def wishes(play: Play) -> dict[str, str]:
    return {
        name.partition("/")[2]: value
        for name, value in (job(play)["metadata"].get("annotations") or {}).items()
        if name in (names.WORKERS, names.SERVERS, names.PAUSED)
    }


@contextmanager
def master(play: Play, **shown: Any) -> Iterator[None]:
    """A master that shows this as soon as it is wished anything."""

    def obey() -> None:
        while not wishes(play) and not done.wait(0.02):
            pass
        play.writes(snapshot_json=Snapshot(STARTED, STARTED, **shown))

    done = threading.Event()
    thread = threading.Thread(target=obey)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def state(play: Play) -> str | None:
    """In the list of jobs."""
    [found] = [each.status.state for each in summaries() if each.id == play.folder.id and each.status]
    return found


def test_a_training_is_paused_when_its_master_says_so_and_the_pod_with_its_checkpoints_stays(
    training: Play,
) -> None:
    with master(training, step=1200, epoch=3, paused=True):
        said = training.handle.pause()
    assert said == (
        f"job {training.folder.id} is paused after step 1,200, in epoch 3; the pod of its master stays, because its "
        "checkpoints are there"
    )
    assert (wishes(training), job(training)["spec"]["suspend"]) == ({"paused": "true"}, False)
    assert state(training) == training.handle.details().status.state == "paused"
    shown = report(training.folder, training.handle.details())
    assert f"`sqlflow resume {training.folder.id}` continues it" in shown.notes
    with pytest.raises(ClusterError, match="is paused already") as refused:
        training.handle.pause()
    assert "sqlflow resume" in str(refused.value.hint)
    assert training.handle.resume() == f"job {training.folder.id} continues"
    assert (wishes(training), state(training)) == ({}, "running")
    with pytest.raises(ClusterError, match="cannot be resumed: it runs"):
        training.handle.resume()


def test_a_job_with_checkpoints_elsewhere_is_suspended(play: Play) -> None:
    begun(play, jobs.with_workers(2, servers=1), **{VARIABLE: "s3://bucket/checkpoints"})
    with master(play, step=7, epoch=1, paused=True):
        assert play.handle.pause() == f"job {play.folder.id} is paused after step 7, in epoch 1"
    assert (wishes(play), job(play)["spec"]["suspend"]) == ({"paused": "true"}, True)
    assert state(play) == "paused"
    play.handle.resume()
    assert (wishes(play), job(play)["spec"]["suspend"], state(play)) == ({}, False, "running")


def test_a_job_that_is_cancelled_meanwhile_is_not_paused(training: Play) -> None:
    def cancel() -> None:
        while not wishes(training):
            pass
        training.handle.cancel()

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    with pytest.raises(ClusterError, match="has ended before it was paused"):
        training.handle.pause()
    cancelling.join()
    assert state(training) == "cancelled"


def test_another_user_may_resume_it(training: Play) -> None:
    with master(training, paused=True):
        training.handle.pause()
    training.handle._objects.patch({"metadata": {"annotations": {names.PAUSED: None}}})
    assert state(training) == "running"


def test_checkpoints_in_the_memory_of_servers_would_be_lost(play: Play) -> None:
    begun(play, jobs.with_workers(2, servers=2))
    with pytest.raises(ClusterError, match="in the memory of its parameter servers") as refused:
        play.handle.pause()
    assert "kubernetes.volume or kubernetes.checkpoints" in str(refused.value.hint)
    assert wishes(play) == {}


def test_a_place_for_checkpoints_does_not_keep_those_in_the_memory_of_servers(play: Play) -> None:
    spec = msgspec.structs.replace(
        jobs.with_workers(2, servers=2), checkpoints=Checkpoints(copies="neighbours")
    )
    begun(play, spec, **{VARIABLE: "s3://bucket/checkpoints"})
    with pytest.raises(ClusterError, match="in the memory of its parameter servers") as refused:
        play.handle.pause()
    assert "train without train.checkpoint_copies" in str(refused.value.hint)
    assert wishes(play) == {}


@pytest.mark.soak
def test_the_checkpoints_of_a_single_server_are_at_the_master(play: Play) -> None:
    begun(play, jobs.with_workers(2, servers=1))
    with master(play, step=7, epoch=1, paused=True):
        assert play.handle.pause().endswith("the pod of its master stays, because its checkpoints are there")


def test_the_number_of_workers_is_a_wish_that_the_master_takes_up(training: Play) -> None:
    training.writes(snapshot_json=Snapshot(STARTED, STARTED, workers=2))
    with master(training, workers=5):
        assert training.handle.scale(Numbers(5)) == f"job {training.folder.id}: 2 → 5 workers"
    assert wishes(training) == {"workers": "5"}
    assert (
        training.handle.scale(Numbers(5))
        == f"job {training.folder.id} has 5 workers already: there is nothing to do"
    )


@pytest.mark.soak
def test_the_number_of_servers_is_a_wish_too(play: Play) -> None:
    begun(play, jobs.with_workers(2, servers=2))
    play.writes(snapshot_json=Snapshot(STARTED, STARTED, workers=2, servers=2, wanted_servers=2))
    with master(play, workers=3, servers=2, wanted_servers=4):
        said = play.handle.scale(Numbers(3, 4))
    assert said == f"job {play.folder.id}: 2 → 3 workers, 2 → 4 parameter servers"
    assert wishes(play) == {"workers": "3", "servers": "4"}


def test_a_job_of_another_strategy_has_no_servers(training: Play) -> None:
    with pytest.raises(ClusterError, match="has no parameter servers"):
        training.handle.scale(Numbers(servers=2))
    assert wishes(training) == {}


def test_a_master_that_does_not_take_it_up_is_said(training: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.steering.TAKEN_UP_SECS", 0.0)
    said = training.handle.scale(Numbers(3))
    assert said.startswith(
        f"job {training.folder.id}: 2 → 3 workers, as soon as its master runs and reads it"
    )


def test_the_only_holder_of_the_parameters_stays_alone(play: Play) -> None:
    begun(play, jobs.job_spec(cluster=Cluster(1, strategy="local")))
    with pytest.raises(ClusterError, match="its only worker holds the parameters"):
        play.handle.scale(Numbers(2))


def test_a_job_that_has_ended_takes_no_wishes(training: Play) -> None:
    training.folder.end("cancelled")
    for command in (training.handle.pause, training.handle.resume, lambda: training.handle.scale(Numbers(2))):
        with pytest.raises(ClusterError, match=r"is cancelled|cannot be resumed: it ran on kubernetes"):
            command()
