"""Manifests of instances' pods, completed from the client's, and the group that pods of a queue belong to."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from edl.cluster import Instance
from edl.cluster.kubernetes import names, quantities
from edl.cluster.kubernetes.deployment import Deployment, Priorities
from edl.cluster.kubernetes.memory import Memory
from edl.cluster.kubernetes.pods import Pod

Manifest = dict[str, Any]
Key = tuple[str, int]


def pod(
    deployment: Deployment,
    instance: Instance,
    workers: int,
    memory: Memory | None = None,
    avoided: Iterable[str] = (),
    group: str = "",
) -> Manifest:
    """Return the manifest of an instance's pod. `workers` is the number in the JobSpec, `memory` replaces the
    manifest's; `avoided` are nodes that it must not run on. Kueue admits the pods of a `group` together.
    """
    manifest = copy.deepcopy(deployment.manifest(instance.role))
    job = deployment.name
    labels = names.labels(job, deployment.job, instance.role)
    metadata = manifest.setdefault("metadata", {})
    metadata["name"] = names.pod(job, instance)
    metadata["labels"] = {
        **metadata.get("labels", {}),
        **labels,
        names.INSTANCE: instance.name,
        names.INCARNATION: str(instance.incarnation),
    }
    metadata["ownerReferences"] = [owner_reference(job, deployment.uid)]
    container = manifest["spec"]["containers"][0]
    variable = {"name": "EDL_INSTANCE", "value": msgspec.json.encode(instance).decode()}
    container["env"] = [
        variable,
        *(entry for entry in container.get("env", []) if entry["name"] != variable["name"]),
    ]
    if group:
        _add_to_group(metadata, group, deployment.policy.least_workers)
    if memory is not None:
        _set_memory(container.setdefault("resources", {}), memory)
    if nodes := [*avoided]:
        _avoid(manifest["spec"], nodes)
    if priority := _priority(deployment.priorities, instance, workers):
        manifest["spec"]["priorityClassName"] = priority
    return manifest


def _add_to_group(metadata: Manifest, group: str, size: int) -> None:
    metadata["labels"][names.QUEUE_GROUP] = group
    metadata["annotations"] = {
        **metadata.get("annotations", {}),
        names.QUEUE_GROUP_SIZE: str(size),
        names.QUEUE_GROUP_REPEATS: "false",
    }


def owner_reference(job: str, uid: str) -> Manifest:
    """Return a reference to the Job: its deletion deletes the pods, but it does not count them as its own."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": job,
        "uid": uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }


def _avoid(spec: Manifest, nodes: list[str]) -> None:
    """Add the nodes to every alternative of the pod's node affinity. A requirement of a field has one value."""
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.setdefault("nodeSelectorTerms", [{}]):
        term["matchFields"] = [
            *term.get("matchFields", []),
            *({"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes),
        ]


def _set_memory(resources: Manifest, memory: Memory) -> None:
    for kind, size in (("requests", memory.request), ("limits", memory.limit)):
        if size:
            resources[kind] = {**resources.get(kind, {}), "memory": quantities.memory(size)}


def _priority(priorities: Priorities, instance: Instance, workers: int) -> str:
    """Return the priority class of a worker; servers have theirs in their manifest."""
    if instance.role != "worker":
        return ""
    number = int(instance.name.rpartition("-")[2])
    return priorities.high if number < math.ceil(priorities.fraction * workers) else priorities.low


class PodGroup:
    """Group of the first workers of a job, which Kueue admits together. Its name is the name of its first pod.

    A group has a fixed size and pods that ask for the same, so further workers, and those that ask for more memory or
    avoid a node, are admitted alone. A lost member is replaced within the group, which holds its room. When all have
    ended, as after a pause, Kueue takes the group for over, and the next workers form another one.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._job = deployment.name
        labels = deployment.worker.get("metadata", {}).get("labels", {})
        size = deployment.policy.least_workers
        self._size = size if names.QUEUE in labels and size > 1 else 0
        self._name = ""
        self._members: set[Key] = set()

    def join(self, instance: Instance, has_ended: Callable[[Key], bool]) -> str:
        """Return the name of the group that a new pod belongs to; empty if it is admitted alone."""
        name, _ = instance.key
        if instance.role != "worker" or int(name.rpartition("-")[2]) >= self._size:
            return ""
        if all(map(has_ended, self._members)):
            self._name, self._members = names.pod(self._job, instance), set()
        self._members.add(instance.key)
        return self._name

    def observe(self, pods: Iterable[Pod]) -> None:
        """Take over the group of an earlier master from its pods."""
        for pod in pods:
            if pod.queue_group and pod.instance is not None and not pod.has_ended:
                self._name = pod.queue_group
                self._members.add(pod.instance.key)
