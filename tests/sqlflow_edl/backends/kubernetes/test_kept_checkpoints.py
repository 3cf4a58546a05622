"""Trainings in pods whose checkpoint outlives all of them, in their data source: see `place`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from edl.checkpoints.kept import KeptCheckpoints
from edl.data import connect
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import jobs
from edl.models.registry.tables import MODELS
from sqlflow_edl.cli import exit_codes
from tests.sqlflow_edl.backends.kubernetes.place import Place, run_command, until
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import (
    TRAIN,
    brief,
    last_job,
    limit,
    nothing_left,
    pinned,
    place,
    points,
    remove_limit,
    report,
    run,
    sqlflow,
)

__all__ = ["place", "points"]

pytestmark = pytest.mark.soak

ALONE = "num_workers = 1, train.seed = 1, train.checkpoint_steps = 200"


def metrics(place: Place) -> list[str]:
    """Metrics of all versions of the model, to the last digit."""
    return [row["metrics"] for row in place.query(f"SELECT metrics FROM {MODELS} ORDER BY version")]


@contextmanager
def closed_nodes(place: Place) -> Iterator[None]:
    """No node takes a new pod meanwhile, as while it is drained."""
    nodes = msgspec.json.decode(place.calls.ask("GET", "/api/v1/nodes"))["items"]

    def taint(node: dict[str, Any], *more: dict[str, str]) -> None:
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        place.calls.ask("PATCH", path, {"spec": {"taints": [*node["spec"].get("taints", []), *more]}})

    try:
        for node in nodes:
            taint(node, {"key": "sqlflow-edl-test/drained", "effect": "NoSchedule"})
        yield
    finally:
        for node in nodes:
            taint(node)


def evict_all(place: Place) -> float:
    """Evict all pods at once, as `kubectl drain` of their node does; return the seconds until they have ended."""
    pods = [pod for pod in place.pods() if pod["status"]["phase"] == "Running"]
    began = time.monotonic()
    with ThreadPoolExecutor(len(pods)) as pool:
        list(pool.map(place.evict, pods))
    names = {pod["metadata"]["name"] for pod in pods}

    def over() -> bool:
        running = (pod for pod in place.pods() if pod["status"]["phase"] == "Running")
        return names.isdisjoint(pod["metadata"]["name"] for pod in running)

    until(over)
    return time.monotonic() - began


def count_kept(place: Place) -> int:
    """Number of kept checkpoints."""
    with connect(place.url) as source:
        own = KeptCheckpoints(source)
        return sum(len(own.names(job.id)) for job in jobs())


def test_a_training_that_failed_is_resumed_in_new_pods_from_its_checkpoint(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlflow("run", "-e", TRAIN.format(epochs=40, how=ALONE), *brief(points)) as client:
        client.until("epoch 4:")
        [row] = pinned(points)
        [table] = row.values()
        points.query(f"RENAME TABLE {table} TO hidden")
        points.delete(points.pod("worker-0"), grace=0)
        assert client.end() == exit_codes.FAILED, client
        points.query(f"RENAME TABLE hidden TO {table}")
    job = last_job()
    assert f"`sqlflow resume {job.id}` continues the training" in str(client)
    assert ClusterFolder(job.path).is_kept
    assert count_kept(points) == 1
    assert any(
        f"`sqlflow resume {job.id}` continues it, until " in note for note in report(capsys, job.id)["notes"]
    )
    assert f"job {job.id} keeps the table" in run_command(capsys, "jobs")
    limit(points, **{"requests.memory": "1Mi"})
    with sqlflow("resume", job.id) as client:
        assert client.end() == exit_codes.FAILED, client
    assert "the master of the job can never start: " in str(client)
    assert f"`sqlflow resume {job.id}` continues the training" in str(client)
    assert count_kept(points) == len(pinned(points)) == 1
    remove_limit(points)
    with sqlflow("resume", job.id) as client:
        client.until("training resumes from step ")
        assert client.end() == exit_codes.OK, client
    assert "stored m@2" in str(client)
    assert not ClusterFolder(job.path).is_kept
    assert count_kept(points) == 0
    nothing_left(points)


@pytest.mark.parametrize(("workers", "servers"), [(1, 0), (2, 0), (2, 1), (2, 2)])
def test_a_training_goes_on_from_its_last_step_when_all_its_pods_were_drained(
    points: Place, capsys: pytest.CaptureFixture[str], workers: int, servers: int
) -> None:
    text = TRAIN.format(
        epochs=30,
        how=f"num_workers = {workers}, num_ps = {servers}, train.seed = 1, train.checkpoint_secs = 600",
    )
    if workers == 1:
        run(points, capsys, text)
    with sqlflow("run", "-e", text, *brief(points)) as client:
        client.until("epoch 2:")
        with closed_nodes(points):
            seconds = evict_all(points)
        client.until("training resumes from step ")
        assert count_kept(points) == 1, client
        assert seconds < 10.0, client
        assert client.end() == exit_codes.OK, client
    assert "training restarts" not in str(client)
    print(f"drained in {seconds:.1f} s")
    if workers == 1:
        undisturbed, drained = metrics(points)
        assert undisturbed == drained
    assert count_kept(points) == 0


def test_a_master_that_leaves_alone_keeps_its_checkpoint_for_the_next_one(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlflow("run", "-e", TRAIN.format(epochs=40, how=ALONE), *brief(points)) as client:
        client.until("epoch 4:")
        [master] = points.pods("master")
        points.evict(master)
        client.until("terminated: the next master continues from here")
        assert count_kept(points) == 1
        assert client.end() == exit_codes.OK, client
    assert "all pods of the job are asked to leave" not in str(client)
    assert count_kept(points) == 0
