"""Jobs that a cluster does not let run: what is said, and that nothing of them is left. See `place` for where."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from edl.build import PROTOCOL, Build, present_build
from sqlflow_edl.backends.kubernetes import apply
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.sqlflow_edl.backends.kubernetes.place import Place
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import (
    QUICK,
    TRAIN,
    brief,
    last_job,
    limit,
    nothing_left,
    place,
    points,
    refused,
    sqlflow,
)

__all__ = ["place", "points"]


@pytest.mark.soak
def test_an_image_that_does_not_exist(points: Place, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(points, capsys, QUICK, "--image", "missing/sqlflow-edl:none", "--set", "image_secs=1")
    assert "note: master waits: ErrImagePull" in said or "note: master waits: ImagePullBackOff" in said
    assert "error: the master of the job cannot start: " in said
    assert "missing/sqlflow-edl:none" in said
    nothing_left(points)


def test_an_image_whose_build_does_not_run_jobs_of_this_one(
    points: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Build("0.1.0", "c0ffee000000", PROTOCOL + 1)
    monkeypatch.setattr(apply, "present_build", lambda: client)
    said = refused(points, capsys, QUICK, "--set", "ttl_secs=1")
    assert f"error: the job was made by {client}, and its image has {present_build()}, which does not" in said
    assert "build the image from the code that is installed where the job is submitted" in said
    nothing_left(points)


@pytest.mark.soak
def test_an_image_of_another_build_that_runs_jobs_of_this_one(
    points: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Build("0.1.0", "c0ffee000000", PROTOCOL)
    monkeypatch.setattr(apply, "present_build", lambda: client)
    assert main(["run", "-e", QUICK, *brief(points)]) == exit_codes.OK
    said = capsys.readouterr().err
    assert f"note: master: the job was made by {client}, and its image has {present_build()}" in said
    nothing_left(points)


@pytest.mark.soak
def test_a_request_that_no_node_can_meet(points: Place) -> None:
    with sqlflow(
        "run", "-e", QUICK, *points.options, "--set", "master_cpu=1000", "--set", "master_cpu_limit=none"
    ) as said:
        said.until("note: master waits: ")
        assert "Insufficient cpu" in said.lines[-1]
        assert said.interrupt() == exit_codes.INTERRUPTED
    nothing_left(points)


@pytest.mark.soak
def test_workers_that_no_node_can_meet(points: Place) -> None:
    options = [*points.options, "--set", "worker_cpu=1000", "--set", "worker_cpu_limit=none"]
    with sqlflow("run", "-e", TRAIN.format(epochs=1, how="num_workers = 2"), *options) as said:
        said.until("note: worker-")
        assert "Insufficient cpu" in said.lines[-1]
        assert said.interrupt() == exit_codes.INTERRUPTED
    nothing_left(points)


@pytest.mark.soak
def test_a_detached_job_whose_workers_no_node_can_meet_within_its_limit(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--set", "worker_cpu=1000", "--set", "worker_cpu_limit=none", "--wait-limit", "3s", "--detach"]
    text = TRAIN.format(epochs=1, how="num_workers = 2")
    assert main(["run", "-e", text, *brief(points), *options]) == exit_codes.OK
    capsys.readouterr()
    assert main(["attach", last_job().id]) == exit_codes.FAILED
    said = capsys.readouterr().err
    assert "error: the job has waited for 3 s, and its limit is over: worker-0 waits: " in said
    assert "Insufficient cpu" in said
    nothing_left(points)


@pytest.mark.soak
def test_a_quota_without_room_for_the_job(points: Place, capsys: pytest.CaptureFixture[str]) -> None:
    limit(points, **{"count/jobs.batch": "0"})
    said = refused(points, capsys, QUICK)
    assert f"error: the quota of the namespace {points.namespace} has no room: " in said
    assert "exceeded quota: few, requested: count/jobs.batch=1, used: count/jobs.batch=0" in said
    nothing_left(points)


def test_a_quota_without_room_for_the_other_objects_of_the_job(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    limit(points, **{"count/services": "0"})
    said = refused(points, capsys, QUICK)
    assert "exceeded quota: few, requested: count/services=1, used: count/services=0" in said
    nothing_left(points)


@pytest.mark.soak
def test_a_quota_with_room_for_some_of_the_pods(points: Place) -> None:
    room = len(points.objects("/api/v1", "pods")) + 2  # a master and one worker
    limit(points, pods=str(room))
    with sqlflow("run", "-e", TRAIN.format(epochs=2, how="num_workers = 2"), *brief(points)) as said:
        assert said.end() == exit_codes.OK, said
    assert "waits: pods " in str(said)
    assert "exceeded quota: few, requested: pods=1" in str(said)
    assert "trained DNNRegressor m@1" in str(said)
    nothing_left(points)


@contextmanager
def account(place: Place, rules: list[dict[str, Any]], folder: Path) -> Iterator[None]:
    """Commands run as an account with these rights."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    place.make("/api/v1", "serviceaccounts", "guest")
    place.make(rbac, "roles", "guest", rules=rules)
    subject = {"kind": "ServiceAccount", "name": "guest", "namespace": place.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "guest"}
    place.make(rbac, "rolebindings", "guest", roleRef=role, subjects=[subject])
    path = f"/api/v1/namespaces/{place.namespace}/serviceaccounts/guest/token"
    answer = msgspec.json.decode(place.calls.ask("POST", path, {"spec": {"expirationSeconds": 3600}}))
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    for user in config["users"]:
        user["user"] = {"token": answer["status"]["token"]}
    file = folder / "guest"
    file.write_text(yaml.safe_dump(config))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(file))
        yield


def test_rights_that_are_missing(points: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rules = [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "list", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    ]
    with account(points, rules, tmp_path):
        said = refused(points, capsys, QUICK)
    assert (
        "error: you may not delete jobs.batch; create services; create, get configmaps; create secrets; "
        in said
    )
    assert f"in the namespace {points.namespace}" in said
    assert "sqlflow help kubernetes lists the required permissions" in said
    nothing_left(points)


def test_rights_that_one_does_not_have_cannot_be_given_to_a_master(
    points: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    everything = ["create", "delete", "get", "list", "patch"]
    rules = [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": everything},
        {"apiGroups": [""], "resources": ["services", "configmaps", "secrets"], "verbs": ["create", "get"]},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles", "rolebindings"],
            "verbs": ["create"],
        },
    ]
    with account(points, rules, tmp_path):
        said = refused(points, capsys, QUICK)
    assert "error: you may not grant the job's master permissions that you do not have" in said
    nothing_left(points)
