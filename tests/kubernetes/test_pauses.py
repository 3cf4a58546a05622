"""Pods without a process."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.pods import pod, until, watched
from tests.kubernetes.process import Cluster


def paused(name: str) -> dict[str, Any]:
    body = pod(name, "")
    body["spec"]["containers"] = [{"name": "main", "image": "registry.example/pause:3"}]
    return body


def test_a_pod_that_pauses_runs_until_it_is_told_to_end(core: Any, namespace: str) -> None:
    created = core.create_namespaced_pod(namespace, paused("p"))
    until(core, namespace, created, "Running")
    assert core.read_namespaced_pod_log("p", namespace) == ""
    core.delete_namespaced_pod("p", namespace)
    *_, last = watched(core.list_namespaced_pod, namespace, created, "DELETED")
    assert last["object"].status.container_statuses[0].state.terminated.exit_code == 0


def test_a_pod_that_pauses_can_run_out_of_memory(kubernetes: Cluster, core: Any, namespace: str) -> None:
    created = core.create_namespaced_pod(namespace, paused("p"))
    until(core, namespace, created, "Running")
    kubernetes.run_out_of_memory(namespace, "p")
    [status] = until(core, namespace, created, "Failed").status.container_statuses
    assert (status.state.terminated.reason, status.state.terminated.exit_code) == ("OOMKilled", 137)
