"""Pods as a master makes them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from edl.cluster import Instance, Role
from edl.cluster.kubernetes.deployment import Deployment, Priorities
from edl.cluster.kubernetes.memory import Memory
from edl.cluster.kubernetes.pod_manifests import pod

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
