"""The group of workers that Kueue admits together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edl.cluster import Instance
from edl.cluster.kubernetes import names, pod_manifests
from edl.cluster.kubernetes.deployment import Deployment, Policy
from edl.cluster.kubernetes.pod_group import PodGroup
from edl.cluster.kubernetes.pods import Pod

QUEUED: dict[str, Any] = {
    "metadata": {"labels": {names.QUEUE: "team-a"}},
    "spec": {"containers": [{"name": "instance"}]},
}


def deployment(worker: dict[str, Any] = QUEUED, least: int = 2) -> Deployment:
    return Deployment("job-1", "ns", "20-1", worker, QUEUED, uid="u", policy=Policy(min_workers=least))


def worker(number: int, incarnation: int = 0) -> Instance:
    return Instance(f"worker-{number}", "worker", incarnation)


def test_the_first_workers_are_a_group_named_like_its_first_pod_and_others_are_admitted_alone() -> None:
    group = PodGroup(deployment())
    names_of = [group.join(each, lambda key: False) for each in (worker(0), worker(1), worker(2))]
    assert names_of == ["job-1-worker-0-0", "job-1-worker-0-0", ""]
    assert group.join(Instance("ps-0", "ps"), lambda key: False) == ""


@pytest.mark.parametrize("each", [deployment(least=1), deployment({"spec": QUEUED["spec"]})])
def test_there_is_no_group_without_a_queue_or_a_least_number(each: Deployment) -> None:
    assert PodGroup(each).join(worker(0), lambda key: False) == ""


def test_a_lost_member_is_replaced_in_its_group_and_a_group_that_is_over_by_another_one() -> None:
    group, ended = PodGroup(deployment()), {("worker-0", 0)}
    for each in (worker(0), worker(1)):
        group.join(each, lambda key: False)
    assert group.join(worker(0, 1), ended.__contains__) == "job-1-worker-0-0"
    ended |= {("worker-1", 0), ("worker-0", 1)}
    assert group.join(worker(1, 1), ended.__contains__) == "job-1-worker-1-1"
    assert group.join(worker(0, 2), ended.__contains__) == "job-1-worker-1-1"


def test_the_next_master_finds_the_group_in_the_pods() -> None:
    manifest = pod_manifests.pod(deployment(), worker(1), 3, group="job-1-worker-0-0")
    assert manifest["metadata"]["annotations"] == {
        names.QUEUE_GROUP_SIZE: "2",
        names.QUEUE_GROUP_REPEATS: "false",
    }
    group = PodGroup(deployment())
    group.observe([msgspec.convert({"metadata": manifest["metadata"]}, Pod)])
    assert group.join(worker(0, 1), lambda key: False) == "job-1-worker-0-0"
