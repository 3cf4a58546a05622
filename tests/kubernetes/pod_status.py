"""The status of a pod, as a node writes it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.kubernetes.kinds import Object

Conditions = dict[str, tuple[str, str, str]]  # type → status, reason, message
ORDER = (
    *("DisruptionTarget", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"),
    "PodScheduled",
)
IMAGE_ID = "sha256:" + "d0" * 32
SCHEDULED: Conditions = {"PodScheduled": ("True", "", "")}
UNREACHABLE: Conditions = {"Ready": ("False", "", "")}


class Moment(NamedTuple):
    """Of a pod's life: what is to be said of all of it."""

    phase: str
    conditions: Conditions
    containers: list[Object]
    init: list[Object]
    why: Object  # reason and message of the whole pod


def written(old: Object, moment: Moment, stamp: str, addresses: Object) -> Object:
    """The next status. A condition keeps its time as long as its status is the same."""
    status: Object = {"phase": moment.phase}
    status["conditions"] = conditions(old.get("conditions", []), moment.conditions, stamp)
    status |= {**addresses, "startTime": old.get("startTime", stamp)}
    kept = {name: old[name] for name in ("reason", "message") if name in old}
    init = {"initContainerStatuses": moment.init} if moment.init else {}
    told = {**kept, **moment.why, **init, "containerStatuses": moment.containers}
    return {**status, **told, "qosClass": old["qosClass"]}


def conditions(old: list[Object], wanted: Conditions, stamp: str) -> list[Object]:
    before = {one["type"]: one for one in old}
    found = []
    for name in ORDER:
        if name not in wanted and name in before:
            found.append(before[name])
        elif name in wanted:
            found.append(_condition(name, wanted[name], before.get(name), stamp))
    return found


def _condition(name: str, wanted: tuple[str, str, str], before: Object | None, stamp: str) -> Object:
    status, reason, message = wanted
    since = before["lastTransitionTime"] if before and before["status"] == status else stamp
    condition: Object = {"type": name, "status": status, "lastProbeTime": None, "lastTransitionTime": since}
    return condition | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})


def conditions_of(
    *, is_set_up: bool, uninitialized: list[str], unready: list[str], end: str = ""
) -> Conditions:
    """`is_set_up`: whether it has its address. `end`: PodCompleted or PodFailed, when no container will run again."""
    initialized = ("True", "PodCompleted" if end == "PodCompleted" else "", "")
    if uninitialized:
        incomplete = f"containers with incomplete status: [{' '.join(uninitialized)}]"
        initialized = ("False", "ContainersNotInitialized", incomplete)
    ready = ("True", "", "")
    if end:
        ready = ("False", end, "")
    elif unready:
        ready = ("False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    return {
        "PodReadyToStartContainers": ("True" if is_set_up else "False", "", ""),
        "Initialized": initialized,
        "Ready": ready,
        "ContainersReady": ready,
    }


def of_image(spec: Object, identifier: str, *, is_running: bool) -> Object:
    """The part of a container's status about what it is; `identifier` when it has been started."""
    found: Object = {"image": spec["image"], "imageID": IMAGE_ID if identifier else ""}
    if identifier:
        found["containerID"] = identifier
    found["started"] = is_running
    if identifier:
        resources = spec.get("resources", {})
        allocated = {"allocatedResources": resources["requests"]} if "requests" in resources else {}
        found |= {**allocated, "resources": resources}
    mounts = [_mount(mount) for mount in spec.get("volumeMounts", [])]
    return {**found, "volumeMounts": mounts} if mounts else found


def _mount(mount: Object) -> Object:
    found: dict[str, Any] = {"name": mount["name"], "mountPath": mount["mountPath"]}
    return {**found, "readOnly": True, "recursiveReadOnly": "Disabled"} if mount.get("readOnly") else found
