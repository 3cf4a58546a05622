"""Nodes that a job avoids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edl.cluster import Change, Instance, Reason
from edl.cluster.kubernetes.pod_cache import BadNodes
from tests.edl.cluster.kubernetes.conftest import Following, Site, followed, site
from tests.kubernetes.process import api_server

__all__ = ["followed", "site"]

ON_ONE_NODE = 'case "$NODE $EDL_INSTANCE" in node-1*worker*) exit 1;; esac; sleep 100'


def worker(incarnation: int = 0, number: int = 0) -> Instance:
    return Instance(f"worker-{number}", "worker", incarnation)


def ended(reason: Reason = "failed") -> Change:
    return Change(worker(), "ended", reason=reason)


@pytest.fixture
def nodes() -> BadNodes:
    """Nodes of a job with an instance on each of two."""
    found = BadNodes(2)
    for node in ("a", "b"):
        found.saw(node, Change(worker(), "running"))
    return found


def test_a_node_is_avoided_when_so_many_have_failed_there(nodes: BadNodes) -> None:
    nodes.saw("a", ended())
    assert nodes.avoided_nodes == {}
    nodes.saw("a", ended("killed"))
    assert nodes.avoided_nodes == {"a": 2}


def test_where_as_many_fail_on_every_node_none_is_avoided(nodes: BadNodes) -> None:
    for node in ("a", "a", "b", "b"):
        nodes.saw(node, ended())
    assert nodes.avoided_nodes == {}
    nodes.saw("c", Change(worker(), "running"))  # one that may be sound
    assert nodes.avoided_nodes == {"a": 2, "b": 2}


@pytest.mark.parametrize("reason", ["done", "stopped", "preempted", "out of memory", "lost", "no room"])
def test_other_ends_are_not_held_against_a_node(nodes: BadNodes, reason: Reason) -> None:
    for _ in range(5):
        nodes.saw("a", ended(reason))
    assert nodes.avoided_nodes == {}


def test_the_only_node_and_a_limit_of_0_avoid_none() -> None:
    for found in (BadNodes(1), BadNodes(0)):
        found.saw("a", ended())
        assert found.avoided_nodes == {}


def test_pods_of_a_job_go_to_another_node_after_failures_on_one(
    site: Callable[..., Site],
    followed: Callable[..., Following],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with api_server(tmp_path) as double:
        env = [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
        place = site(ON_ONE_NODE, double=double, env=env)
        cluster = place.cluster()
        following = followed(cluster)
        server = Instance("ps-0", "ps", 0)
        cluster.start(server)
        following.comes_to("running", server)
        for incarnation in range(3):
            cluster.start(worker(incarnation))
            following.comes_to("ended", worker(incarnation))
        double.capacity(pods="0")
        double.add_node("node-2", cpu="4", memory="4Gi", pods="10")
        cluster.start(worker(number=1))
        following.comes_to("running", worker(number=1))
        assert cluster.unfit == {"ps-0"}
        double.capacity(pods="10")  # the scheduler would take this node, where no pod is
        cluster.start(worker(3))
        [running] = following.comes_to("running", worker(3))
        assert running.place.endswith("on node-2")
        assert "pods of the job avoid node-1 from now on: 3 instances" in capfd.readouterr().err
        following.close()
        place.close()
