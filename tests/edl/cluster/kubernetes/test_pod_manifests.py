"""Pods as a master makes them."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from edl.cluster import Instance, Role
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.deployment import Deployment, Policy, Priorities
from edl.cluster.kubernetes.memory import Memory
from edl.cluster.kubernetes.pod_manifests import PodGroup, pod
from edl.cluster.kubernetes.pods import Pod

MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
    "spec": {
        "containers": [
            {"name": "worker", "env": [{"name": "A", "value": "$(EDL_INSTANCE)"}]},
            {"name": "sidecar"},
        ],
        "priorityClassName": "theirs",
    },
}


def deployment(**fields: Any) -> Deployment:
    return Deployment("job", "ns", "id", MANIFEST, MANIFEST, uid="u", **fields)


def test_what_the_client_rendered_stays_as_it_is() -> None:
    before = copy.deepcopy(MANIFEST)
    made = pod(deployment(), Instance("worker-0", "worker"), 1, Memory(1 << 20, 1 << 30))
    assert before == MANIFEST
    assert made["metadata"]["annotations"] == {"note": "b"}
    assert made["spec"]["containers"][1] == {"name": "sidecar"}
    assert made["spec"]["priorityClassName"] == "theirs"


def test_who_it_is_is_told_before_other_variables_which_may_use_it() -> None:
    [container, _] = pod(deployment(), Instance("ps-1", "ps", 2), 1)["spec"]["containers"]
    assert [each["name"] for each in container["env"]] == ["EDL_INSTANCE", "A"]


def test_memory_is_set_where_it_is_another_one() -> None:
    [container, _] = pod(deployment(), Instance("worker-0", "worker"), 1, Memory(1 << 20, 1 << 30))["spec"][
        "containers"
    ]
    assert container["resources"] == {"requests": {"memory": "1Mi"}, "limits": {"memory": "1Gi"}}
    [container, _] = pod(deployment(), Instance("worker-0", "worker"), 1)["spec"]["containers"]
    assert "resources" not in container


@pytest.mark.parametrize(("fraction", "high"), [(0.0, 0), (0.1, 1), (0.5, 2), (0.51, 3), (1.0, 4)])
def test_the_first_workers_have_the_high_priority(fraction: float, high: int) -> None:
    placed = deployment(priorities=Priorities("high", "low", fraction))
    made = [pod(placed, Instance(f"worker-{number}", "worker"), 4) for number in range(6)]
    assert [each["spec"]["priorityClassName"] for each in made] == ["high"] * high + ["low"] * (6 - high)


@pytest.mark.parametrize(("role", "name"), [("ps", "theirs"), ("worker", "theirs")])
def test_who_has_no_class_of_ours_has_the_manifests(role: Role, name: str) -> None:
    placed = deployment(priorities=Priorities("high" if role == "ps" else "", ""))
    assert pod(placed, Instance(f"{role}-0", role), 4)["spec"]["priorityClassName"] == name


@pytest.mark.parametrize("terms", [[], [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, {}]])
def test_nodes_to_avoid_are_added_to_each_alternative_of_the_affinity(terms: list[dict[str, Any]]) -> None:
    manifest = copy.deepcopy(MANIFEST)
    if terms:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        manifest["spec"]["affinity"] = {"nodeAffinity": required, "podAffinity": {}}
    given = Deployment("job", "ns", "id", manifest, manifest, uid="u")
    affinity = pod(given, Instance("worker-0", "worker"), 1, avoided=["a", "b"])["spec"]["affinity"]
    added = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in ("a", "b")]
    found = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert found == [{**term, "matchFields": added} for term in terms or [{}]]
    assert "affinity" not in pod(deployment(), Instance("worker-0", "worker"), 1)["spec"]


# Groups of a queue ------------------------------------------------------------------------------------------

QUEUED: dict[str, Any] = {
    "metadata": {"labels": {names.QUEUE: "team-a"}},
    "spec": {"containers": [{"name": "instance"}]},
}


def queued_deployment(worker: dict[str, Any] = QUEUED, least: int = 2) -> Deployment:
    return Deployment("job-1", "ns", "20-1", worker, QUEUED, uid="u", policy=Policy(min_workers=least))


def worker(number: int, incarnation: int = 0) -> Instance:
    return Instance(f"worker-{number}", "worker", incarnation)


def test_the_first_workers_are_a_group_named_like_its_first_pod_and_others_are_admitted_alone() -> None:
    group = PodGroup(queued_deployment())
    names_of = [group.join(each, lambda key: False) for each in (worker(0), worker(1), worker(2))]
    assert names_of == ["job-1-worker-0-0", "job-1-worker-0-0", ""]
    assert group.join(Instance("ps-0", "ps"), lambda key: False) == ""


@pytest.mark.parametrize("each", [queued_deployment(least=1), queued_deployment({"spec": QUEUED["spec"]})])
def test_there_is_no_group_without_a_queue_or_a_least_number(each: Deployment) -> None:
    assert PodGroup(each).join(worker(0), lambda key: False) == ""


def test_a_lost_member_is_replaced_in_its_group_and_a_group_that_is_over_by_another_one() -> None:
    group, ended = PodGroup(queued_deployment()), {("worker-0", 0)}
    for each in (worker(0), worker(1)):
        group.join(each, lambda key: False)
    assert group.join(worker(0, 1), ended.__contains__) == "job-1-worker-0-0"
    ended |= {("worker-1", 0), ("worker-0", 1)}
    assert group.join(worker(1, 1), ended.__contains__) == "job-1-worker-1-1"
    assert group.join(worker(0, 2), ended.__contains__) == "job-1-worker-1-1"


def test_the_next_master_finds_the_group_in_the_pods() -> None:
    manifest = pod(queued_deployment(), worker(1), 3, group="job-1-worker-0-0")
    assert manifest["metadata"]["annotations"] == {
        names.QUEUE_GROUP_SIZE: "2",
        names.QUEUE_GROUP_REPEATS: "false",
    }
    group = PodGroup(queued_deployment())
    group.observe([msgspec.convert({"metadata": manifest["metadata"]}, Pod)])
    assert group.join(worker(0, 1), lambda key: False) == "job-1-worker-0-0"
