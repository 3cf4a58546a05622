"""Manifests of instances' pods, completed from those that the client rendered. Pure functions."""

from __future__ import annotations

import copy
import math
from typing import Any

import msgspec

from edl.cluster import Instance
from edl.cluster.kubernetes import names, quantities
from edl.cluster.kubernetes.deployment import Deployment, Priorities
from edl.cluster.kubernetes.memory import Memory

Manifest = dict[str, Any]


def pod(deployment: Deployment, instance: Instance, workers: int, memory: Memory | None = None) -> Manifest:
    """Return the manifest of an instance's pod. `workers` is the number in the JobSpec, `memory` replaces the
    manifest's.
    """
    made = copy.deepcopy(deployment.manifest(instance.role))
    job = deployment.name
    labels = names.labels(job, deployment.job, instance.role)
    metadata = made.setdefault("metadata", {})
    metadata["name"] = names.pod(job, instance)
    metadata["labels"] = {
        **metadata.get("labels", {}),
        **labels,
        names.INSTANCE: instance.name,
        names.INCARNATION: str(instance.incarnation),
    }
    metadata["ownerReferences"] = [owner(job, deployment.uid)]
    container = made["spec"]["containers"][0]
    variable = {"name": "EDL_INSTANCE", "value": msgspec.json.encode(instance).decode()}
    container["env"] = [
        variable,
        *(each for each in container.get("env", []) if each["name"] != variable["name"]),
    ]
    if memory is not None:
        _set_memory(container.setdefault("resources", {}), memory)
    if priority := _priority(deployment.priorities, instance, workers):
        made["spec"]["priorityClassName"] = priority
    return made


def owner(job: str, uid: str) -> Manifest:
    """Return a reference to the Job: its deletion deletes the pods, but it does not count them as its own."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": job,
        "uid": uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }


def _set_memory(resources: Manifest, memory: Memory) -> None:
    for kind, size in (("requests", memory.request), ("limits", memory.limit)):
        if size:
            resources[kind] = {**resources.get(kind, {}), "memory": quantities.memory(size)}


def _priority(priorities: Priorities, instance: Instance, workers: int) -> str:
    """Return the priority class of a worker; that of servers is in their manifest."""
    if instance.role != "worker":
        return ""
    number = int(instance.name.rpartition("-")[2])
    return priorities.high if number < math.ceil(priorities.fraction * workers) else priorities.low
