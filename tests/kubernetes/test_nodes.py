"""Nodes that are lost, and what becomes of the pods that were on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests.kubernetes.pods import pod, until, watched
from tests.kubernetes.process import api_server

pytestmark = pytest.mark.soak  # of the double alone: every change has the tests of what talks to it


def disruption(found: Any) -> str:
    return next(one.reason for one in found.status.conditions if one.type == "DisruptionTarget")


def test_a_pod_of_a_lost_node_is_told_to_go_and_goes_with_the_node(tmp_path: Path) -> None:
    with api_server(tmp_path) as cluster, cluster.client() as api:
        core, namespace = client.CoreV1Api(api), cluster.new_namespace()
        created = core.create_namespaced_pod(namespace, pod("p", "sleep 60"))
        until(core, namespace, created, "Running")
        cluster.add_node("node-2")
        cluster.lose_node("node-1")
        events = watched(core.list_namespaced_pod, namespace, created, "DELETED")
        told = next(one["object"] for one in events if one["object"].metadata.deletion_timestamp)
        assert (told.status.phase, disruption(told)) == ("Running", "DeletionByTaintManager")
        other = core.create_namespaced_pod(namespace, pod("q", "sleep 60"))
        assert until(core, namespace, other, "Running").spec.node_name == "node-2"
        assert core.read_namespaced_pod("p", namespace).status.phase == "Running"  # as far as anybody knows
        cluster.remove_node("node-1")
        last = [one["object"] for one in events if one["object"].metadata.name == "p"][-1]
        assert (last.status.phase, disruption(last)) == ("Failed", "DeletionByPodGC")
