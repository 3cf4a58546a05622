"""A namespace that admits pods with more rights than a job's is told to its user, once per job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edl.jobs import job_folder
from sqlflow_edl.backends.kubernetes import submit
from sqlflow_edl.backends.kubernetes.admission import describe_open_admission
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings, read_configuration
from tests.kubernetes.process import Cluster
from tests.sqlflow_edl.backends.kubernetes.jobs import job_spec
from tests.sqlflow_edl.backends.kubernetes.play import Told


def settings() -> KubernetesSettings:
    return read_configuration().settings()


def enforce_restricted(kubernetes: Cluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    found = kubernetes.ask("GET", path)
    found["metadata"].setdefault("labels", {})["pod-security.kubernetes.io/enforce"] = "restricted"
    kubernetes.ask("PUT", path, found)


def test_a_namespace_that_admits_any_pod_is_named_with_the_command_that_restricts_it(
    kubernetes: Cluster, namespace: str
) -> None:
    note = describe_open_admission(settings())
    assert f"the namespace {namespace} does not enforce the Pod Security Standard restricted" in note
    assert f"kubectl label namespace {namespace} pod-security.kubernetes.io/enforce=restricted" in note
    assert kubernetes.ask("GET", f"/api/v1/namespaces/{namespace}/pods")["items"] == []


def test_a_namespace_that_enforces_the_standard_gets_no_note(kubernetes: Cluster, namespace: str) -> None:
    enforce_restricted(kubernetes, namespace)
    assert describe_open_admission(settings()) == ""


def test_a_user_who_may_not_create_pods_gets_no_note(
    kubernetes: Cluster, namespace: str, kubeconfig: Callable[..., Path]
) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    kubernetes.ask("POST", path, {"metadata": {"name": "user"}})
    token = kubernetes.ask("POST", f"{path}/user/token", {"spec": {}})["status"]["token"]
    kubeconfig(kubernetes.url, token, namespace)
    assert describe_open_admission(settings()) == ""


def test_an_api_server_that_does_not_answer_causes_no_note(kubeconfig: Callable[..., Path]) -> None:
    kubeconfig("http://127.0.0.1:9", "token")
    assert describe_open_admission(settings()) == ""


def test_each_job_tells_it_once(namespace: str, monkeypatch: pytest.MonkeyPatch, told: Told) -> None:
    monkeypatch.setattr(submit, "deploy", lambda *_: None)
    job = job_folder.create("train", "SELECT 1")
    submit.start_job(job, job_spec(), settings(), told)
    assert [
        note for note in told.notes if f"the namespace {namespace} does not enforce" in note
    ] == told.notes
    assert len(told.notes) == 1
