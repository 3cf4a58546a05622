"""What a test can do to the node of the double and to what runs there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests.kubernetes.pods import pod, until
from tests.kubernetes.process import Cluster, api_server

pytestmark = pytest.mark.soak  # of the double alone: every change has the tests of what talks to it


def test_a_pod_that_runs_out_of_memory_says_so(kubernetes: Cluster, core: Any, namespace: str) -> None:
    created = core.create_namespaced_pod(namespace, pod("p", "sleep 60"))
    until(core, namespace, created, "Running")
    kubernetes.run_out_of_memory(namespace, "p")
    [status] = until(core, namespace, created, "Failed").status.container_statuses
    assert (status.state.terminated.reason, status.state.terminated.exit_code) == ("OOMKilled", 137)


def test_a_pod_waits_until_the_node_has_room_for_it(tmp_path: Path) -> None:
    with api_server(tmp_path) as cluster, cluster.client() as api:
        core, namespace = client.CoreV1Api(api), cluster.new_namespace()
        cluster.capacity(cpu="2")
        created = []
        for name in "ab":
            body = pod(name, "sleep 60")
            body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1500m"}}
            created.append(core.create_namespaced_pod(namespace, body))
        first, second = created
        until(core, namespace, first, "Running")
        [condition] = core.read_namespaced_pod("b", namespace).status.conditions
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        assert condition.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        cluster.capacity(cpu="3")
        until(core, namespace, second, "Running")
