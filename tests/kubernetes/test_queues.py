"""Queues of Kueue on the double: what is gated, who is admitted, and what others may do about it."""

from __future__ import annotations

from typing import Any

import pytest

from edl.cluster.kubernetes.api_calls import APIRefusedError, Calls
from tests.edl.cluster.local.conftest import wait_until
from tests.kubernetes.process import Cluster

pytestmark = pytest.mark.soak  # of the double alone: every change has the tests of what talks to it

QUEUE = "kueue.x-k8s.io/queue-name"
GATE = "kueue.x-k8s.io/admission"


@pytest.fixture
def pods(kubernetes: Cluster, namespace: str) -> str:
    """The path of the pods of a namespace whose queue admits one processor."""
    kubernetes.queue(namespace, "q", cpu="1")
    return f"/api/v1/namespaces/{namespace}/pods"


def pod(name: str, cpu: str = "600m", **labels: str) -> dict[str, Any]:
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "labels": labels or {QUEUE: "q"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def gated(kubernetes: Cluster, path: str) -> list[str]:
    return [
        each["metadata"]["name"]
        for each in kubernetes.ask("GET", path)["items"]
        if {"name": GATE} in each["spec"].get("schedulingGates", [])
    ]


def test_pods_are_gated_and_admitted_in_their_order_within_the_quota(kubernetes: Cluster, pods: str) -> None:
    for name in ("a", "b", "c"):
        made = kubernetes.ask("POST", pods, pod(name))
        assert made["metadata"]["labels"]["kueue.x-k8s.io/managed"] == "true"
        assert made["metadata"]["finalizers"] == ["kueue.x-k8s.io/managed"]
        [condition] = made["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")
    kubernetes.ask("POST", pods, pod("small", cpu="100m"))  # it fits, and waits behind the others
    wait_until(lambda: gated(kubernetes, pods) == ["b", "c", "small"])
    for name in ("a", "c"):  # one on a node, one that waits: the finalizer keeps neither
        kubernetes.ask("DELETE", f"{pods}/{name}")
    wait_until(
        lambda: [each["metadata"]["name"] for each in kubernetes.ask("GET", pods)["items"]] == ["b", "small"]
    )
    assert gated(kubernetes, pods) == []
    kubernetes.ask("POST", pods, pod("other", team="x"))
    assert "other" not in gated(kubernetes, pods)


def test_more_room_admits_more(kubernetes: Cluster, namespace: str, pods: str) -> None:
    for name in ("a", "b"):
        kubernetes.ask("POST", pods, pod(name))
    wait_until(lambda: gated(kubernetes, pods) == ["b"])
    kubernetes.queue(namespace, "q", cpu="2")
    wait_until(lambda: gated(kubernetes, pods) == [])


def test_gates_can_be_removed_and_not_added(kubernetes: Cluster, pods: str) -> None:
    kubernetes.ask("POST", pods, pod("a", team="x"))
    calls = Calls(kubernetes.client())
    with pytest.raises(APIRefusedError, match="pod updates may not change fields"):
        calls.ask("PATCH", f"{pods}/a", {"spec": {"schedulingGates": [{"name": "mine"}]}})


@pytest.fixture
def jobs(pods: str) -> str:
    return pods.replace("/api/v1", "/apis/batch/v1").replace("/pods", "/jobs")


def job(name: str, **labels: str) -> dict[str, Any]:
    template = {"metadata": {}, "spec": {**pod(name)["spec"], "restartPolicy": "Never"}}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"suspend": True, "template": template}}


def test_only_the_queue_resumes_a_job_that_has_its_label(kubernetes: Cluster, pods: str, jobs: str) -> None:
    kubernetes.ask("POST", pods, pod("a"))
    kubernetes.ask("POST", jobs, job("j"))
    calls = Calls(kubernetes.client())
    calls.ask("PATCH", f"{jobs}/j", {"metadata": {"labels": {QUEUE: "q"}}})

    def suspended() -> bool:
        return bool(kubernetes.ask("GET", f"{jobs}/j")["spec"]["suspend"])

    calls.ask("PATCH", f"{jobs}/j", {"spec": {"suspend": False}})
    wait_until(suspended)
    assert [each["metadata"]["name"] for each in kubernetes.ask("GET", pods)["items"]] == ["a"]
    kubernetes.ask("DELETE", f"{pods}/a")
    wait_until(lambda: not suspended())
    wait_until(lambda: len(kubernetes.ask("GET", pods)["items"]) == 1)
    [its] = kubernetes.ask("GET", pods)["items"]
    assert "schedulingGates" not in its["spec"]
