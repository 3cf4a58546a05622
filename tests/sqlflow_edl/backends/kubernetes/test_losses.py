"""Pods of whole jobs that are lost, killed, evicted or cut off, and what is left of it in the end. See `place`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from edl.data.server_url import parse_server
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.cutting import Proxy
from tests.sqlflow_edl.backends.kubernetes.place import Place, until
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import (
    TRAIN,
    brief,
    last_job,
    nothing_left,
    place,
    points,
    relaunches,
    report,
    run,
    sqlflow,
)

__all__ = ["place", "points"]

pytestmark = pytest.mark.soak

SERVERS = "num_workers = 2, num_ps = 2, train.checkpoint_steps = 200"

# Ends the process of worker-1's first start, as `kill -9` does, once it has loaded the framework.
KILL = """
import os, pathlib, signal, time

def processes():
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\\0")
            files = (folder / "maps").read_text()
        except OSError:
            continue
        ours = any(each.startswith(b"EDL_JOB=") and each.endswith(os.environb[b"JOB"]) for each in variables)
        worker = any(each.startswith(b"EDL_INSTANCE=") and b"worker-1" in each for each in variables)
        if ours and worker and "libtorch" in files:
            yield int(folder.name)

while os.environ["POD"].endswith("-worker-1-0"):
    for process in processes():
        os.kill(process, signal.SIGKILL)
        raise SystemExit
    time.sleep(0.1)
"""


def test_a_server_is_deleted_and_a_worker_evicted(points: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Instances that replace others are trusted: calls are encrypted."""
    encrypted = (*brief(points), "--set", "tls=true")
    with sqlflow("run", "-e", TRAIN.format(epochs=24, how=SERVERS), *encrypted) as said:
        said.until("epoch 2:")
        points.delete(points.pod("ps-1"), grace=0)
        until(lambda: points.pod("ps-1", incarnation=1))
        points.evict(points.pod("worker-1"))
        assert said.end() == exit_codes.OK, said
    assert "trained DNNRegressor m@1 on 5,400 rows" in str(said)
    found = relaunches(report(capsys, last_job().id))
    assert found["ps-1"] >= 1
    assert found["worker-1"] >= 1
    nothing_left(points)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_worker_that_grows_trees_is_deleted(
    points: Place, capsys: pytest.CaptureFixture[str], library: str
) -> None:
    trees = (
        f"SELECT a, b, y FROM points TO TRAIN BoostedTreesRegressor WITH model.framework = {library}, "
        "num_workers = 2, train.num_boost_round = 150, train.checkpoint_steps = 10 LABEL y INTO m"
    )
    with sqlflow("run", "-e", trees, *brief(points)) as said:
        until(lambda: points.pod("worker-1"))
        said.until("epoch ")
        points.delete(points.pod("worker-1"), grace=0)
        assert said.end() == exit_codes.OK, said
    assert "trained BoostedTreesRegressor m@1 on 5,400 rows" in str(said)
    assert report(capsys, last_job().id)["state"] == "done"
    assert relaunches(report(capsys, last_job().id))["worker-1"] >= 1
    nothing_left(points)


def test_all_pods_are_deleted_at_once(points: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlflow("run", "-e", TRAIN.format(epochs=8, how="num_workers = 2"), *brief(points)) as said:
        said.until("epoch 1:")
        points.delete_all()
        assert said.end() == exit_codes.OK, said
    assert "trained DNNRegressor m@1 on 5,400 rows" in str(said)
    found = relaunches(report(capsys, last_job().id))
    assert {"master", "worker-0", "worker-1"} <= found.keys()
    nothing_left(points)


def test_a_process_is_killed_in_its_container(
    points: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fields = {"JOB": "metadata.labels['sqlflow-edl/job']", "POD": "metadata.name"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    killer = {"name": "killer", "image": points.image, "command": ["python", "-c", KILL], "env": env}
    template = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {"sqlflow-edl/role": "worker"}},
        "spec": {"shareProcessNamespace": True, "containers": [{"name": "instance"}, killer]},
    }
    file = tmp_path / "pods.yaml"
    file.write_text(yaml.safe_dump(template))
    options = [*brief(points), "--set", f"pod_template={file}"]
    with sqlflow("run", "-e", TRAIN.format(epochs=4, how="num_workers = 2"), *options) as said:
        assert said.end() == exit_codes.OK, said
    [row] = [row for row in report(capsys, last_job().id)["instances"] if row["name"] == "worker-1"]
    assert (row["relaunches"], "killed" in row["note"] or "137" in row["note"]) == (1, True)
    nothing_left(points)


def test_pods_that_do_not_reach_the_master_are_reported_and_go_on_when_they_do(
    points: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Service of the job leads nowhere for a while."""
    monkeypatch.setenv("EDL_UNREACHABLE_SECS", "1")
    with sqlflow("run", "-e", TRAIN.format(epochs=1, how="num_workers = 1"), *brief(points)) as said:
        until(lambda: points.pods("master"))
        [service] = points.objects("/api/v1", "services", "app.kubernetes.io/name=sqlflow-edl")
        points.patch("/api/v1", "services", service, {"spec": {"selector": {"sqlflow-edl/role": "nobody"}}})
        said.until(" note: master: ")
        while "has not reached the master" not in said.lines[-1]:
            said.until(" note: master: ")
        assert "worker-0 has run for" in said.lines[-1]
        assert "check the name service of the cluster, its NetworkPolicies" in said.lines[-1]
        job = last_job()

        def noted() -> bool:
            rows = {row["name"]: row["note"] for row in report(capsys, job.id)["instances"]}
            return rows.get("worker-0", "").startswith("has not reached the master for ")

        until(noted, pause=0.5)
        assert main(["logs", job.id, "worker-0"]) == exit_codes.OK
        assert "has not reached the master at " in capsys.readouterr().out
        points.patch("/api/v1", "services", service, {"spec": {"selector": {"sqlflow-edl/role": "master"}}})
        assert said.end() == exit_codes.OK, said
    assert "note: master: worker-0 has reached the master after " in str(said)
    nothing_left(points)


def test_a_data_source_that_pods_do_not_reach_is_named(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    if points.double is None:
        pytest.skip("the proxy is on this machine, as the pods of the double are")
    port = parse_server(points.url).port
    proxy = Proxy(int(port or 0), after=0, left=0)
    far = replace(points, url=points.url.replace(f":{port}/", f":{proxy.port}/"))
    with sqlflow("run", "-e", TRAIN.format(epochs=1, how="num_workers = 1"), *brief(far)) as said:
        until(lambda: far.pods("worker"))
        proxy.refuse()
        assert said.end() == exit_codes.FAILED
    proxy.close()
    assert f"127.0.0.1:{proxy.port}: the connection is refused: nothing listens there" in str(said)
    assert "pods do not reach it, though the client did: check the name service of the cluster" in str(
        said
    ), said
    run(points, capsys, "SELECT 1 AS one")  # whoever opens the source next
    nothing_left(points)


@pytest.mark.soak
def test_a_data_source_that_is_away_for_a_while_is_named_and_waited_for(
    points: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    if points.double is None:
        pytest.skip("the proxy is on this machine, as the pods of the double are")
    monkeypatch.setenv("EDL_UNREACHABLE_SECS", "1")
    proxy = Proxy(int(parse_server(points.url).port or 0), after=0, left=0)
    far = replace(points, url=re.sub(r":\d+/", f":{proxy.port}/", points.url))
    with sqlflow("run", "-e", TRAIN.format(epochs=60, how="num_workers = 2"), *brief(far)) as said:
        said.until("epoch 2")
        proxy.close()
        said.until("does not reach the data source: cannot open mysql://")
        proxy.reopen()
        assert said.end() == exit_codes.OK, said
    proxy.close()
    assert "reaches its peers again" in str(said)
    nothing_left(points)
