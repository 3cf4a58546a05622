"""The official client, as it comes, and the double: what works, and what a test can make go wrong."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import urllib3
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from tests.kubernetes.faults import Fault
from tests.kubernetes.pods import phases, pod, watched
from tests.kubernetes.process import Cluster

pytestmark = pytest.mark.soak  # of the double alone: every change has the tests of what talks to it


@pytest.mark.parametrize(("script", "code", "last"), [("exit 0", 0, "Succeeded"), ("exit 3", 3, "Failed")])
def test_a_pod_runs_as_a_process_and_ends_as_its_command_does(
    core: Any, namespace: str, script: str, code: int, last: str
) -> None:
    created = core.create_namespaced_pod(namespace, pod("p", f"sleep 0.3; {script}"))
    assert phases(core, namespace, created, last) == ["Pending", "Running", last]
    [status] = core.read_namespaced_pod("p", namespace).status.container_statuses
    assert status.state.terminated.exit_code == code


def test_a_pod_that_ignores_its_end_is_killed_when_its_grace_is_over(core: Any, namespace: str) -> None:
    body = pod("p", "trap '' TERM; while :; do sleep 0.1; done")
    body["spec"]["terminationGracePeriodSeconds"] = 1
    created = core.create_namespaced_pod(namespace, body)
    assert phases(core, namespace, created, "Running")[-1] == "Running"
    deleted = core.delete_namespaced_pod("p", namespace)
    *_, last = watched(core.list_namespaced_pod, namespace, deleted, "DELETED")
    assert last["object"].status.container_statuses[0].state.terminated.exit_code == 137


def test_a_watch_that_is_cut_breaks_and_the_next_goes_on(
    kubernetes: Cluster, core: Any, namespace: str
) -> None:
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    for name in "ab":
        core.create_namespaced_config_map(namespace, {"metadata": {"name": name}})
    kubernetes.go_wrong(Fault("cut", "watch", events=1))
    options = {"resource_version": version, "watch": True, "timeout_seconds": 5, "_preload_content": False}
    with (
        contextlib.closing(core.list_namespaced_config_map(namespace, **options)) as answer,
        pytest.raises(urllib3.exceptions.ProtocolError),
    ):
        list(answer.stream())
    events = watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version=version)
    with contextlib.closing(events):
        assert [next(events)["object"].metadata.name for _ in "ab"] == ["a", "b"]


def test_a_watch_of_a_compacted_revision_is_gone(kubernetes: Cluster, core: Any, namespace: str) -> None:
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "c"}})
    kubernetes.compact()
    events = watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version=version)
    with contextlib.closing(events), pytest.raises(ApiException, match="too old resource version"):
        next(events)


def test_an_answer_that_is_lost_was_done(kubernetes: Cluster, core: Any, namespace: str) -> None:
    kubernetes.go_wrong(Fault("lose", "POST"))
    body = {"metadata": {"name": "c"}}
    with pytest.raises(urllib3.exceptions.HTTPError):
        core.create_namespaced_config_map(namespace, body)
    with pytest.raises(ApiException) as refused:
        core.create_namespaced_config_map(namespace, body)
    assert refused.value.status == 409


def test_who_writes_what_is_gone_has_a_conflict_unless_the_object_names_no_uid(
    core: Any, namespace: str
) -> None:
    made = core.create_namespaced_config_map(namespace, {"metadata": {"name": "x"}})
    core.delete_namespaced_config_map("x", namespace)
    with pytest.raises(ApiException) as refused:
        core.replace_namespaced_config_map("x", namespace, made)
    assert refused.value.status == 409
    assert f'UID in precondition: {made.metadata.uid}, UID in object meta: "' in refused.value.body
    made.metadata.uid = None
    with pytest.raises(ApiException) as refused:
        core.replace_namespaced_config_map("x", namespace, made)
    assert refused.value.status == 404


def test_who_asks_too_often_is_told_when_to_come_back(kubernetes: Cluster, core: Any, namespace: str) -> None:
    kubernetes.go_wrong(Fault("throttle", "configmaps"))
    with pytest.raises(ApiException) as refused:
        core.list_namespaced_config_map(namespace)
    assert (refused.value.status, refused.value.headers["Retry-After"]) == (429, "1")
    assert core.list_namespaced_config_map(namespace).items


def test_a_log_is_followed_to_its_end(core: Any, namespace: str) -> None:
    created = core.create_namespaced_pod(namespace, pod("p", "echo one; sleep 0.3; echo two; sleep 0.2"))
    assert phases(core, namespace, created, "Running")[-1] == "Running"
    lines = watch.Watch().stream(core.read_namespaced_pod_log, "p", namespace)
    assert list(lines) == ["one", "two"]
    assert core.read_namespaced_pod_log("p", namespace, tail_lines=1) == "two\n"


def test_what_a_job_owns_goes_with_it_and_before_it(kubernetes: Cluster, core: Any, namespace: str) -> None:
    batch = client.BatchV1Api(core.api_client)
    spec = {"template": {"spec": pod("", "sleep 60")["spec"] | {"terminationGracePeriodSeconds": 0}}}
    job = batch.create_namespaced_job(namespace, {"metadata": {"name": "j"}, "spec": spec})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job.metadata.uid}
    body = {"metadata": {"name": "c", "ownerReferences": [{**owner, "blockOwnerDeletion": True}]}}
    core.create_namespaced_config_map(namespace, body)
    batch.delete_namespaced_job("j", namespace, propagation_policy="Foreground")
    *_, last = watched(batch.list_namespaced_job, namespace, job, "DELETED")
    assert last["type"] == "DELETED"
    assert not core.list_namespaced_pod(namespace).items
    assert [one.metadata.name for one in core.list_namespaced_config_map(namespace).items] == [
        "kube-root-ca.crt"
    ]


def test_what_names_an_owner_that_never_was_is_collected(core: Any, namespace: str) -> None:
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "j",
        "uid": "00000000-0000-4000-8000-000000000000",
    }
    body = {"metadata": {"name": "c", "ownerReferences": [owner]}}
    created = core.create_namespaced_config_map(namespace, body)
    *_, last = watched(core.list_namespaced_config_map, namespace, created, "DELETED")
    assert last["type"] == "DELETED"


def test_a_pod_that_is_evicted_says_so_unless_a_budget_forbids_it(core: Any, namespace: str) -> None:
    policy = client.PolicyV1Api(core.api_client)
    body = pod("p", "sleep 60")
    body["metadata"]["labels"], body["spec"]["terminationGracePeriodSeconds"] = {"app": "x"}, 0
    created = core.create_namespaced_pod(namespace, body)
    assert phases(core, namespace, created, "Running")[-1] == "Running"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    policy.create_namespaced_pod_disruption_budget(namespace, {"metadata": {"name": "guard"}, "spec": spec})
    eviction = {"metadata": {"name": "p"}}
    with pytest.raises(ApiException) as refused:
        core.create_namespaced_pod_eviction("p", namespace, eviction)
    assert refused.value.status == 429
    policy.delete_namespaced_pod_disruption_budget("guard", namespace)
    core.create_namespaced_pod_eviction("p", namespace, eviction)
    *_, last = watched(core.list_namespaced_pod, namespace, created, "DELETED")
    reasons = {condition.type: condition.reason for condition in last["object"].status.conditions}
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
