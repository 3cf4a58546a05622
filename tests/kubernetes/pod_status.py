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


class Moment(NamedTuple):
    """Of a pod's life: what is to be said of all of it."""

    phase: str
    conditions: Conditions
    containers: list[Object]


def written(old: Object, moment: Moment, stamp: str, addresses: Object) -> Object:
    """The next status. A condition keeps its time as long as its status is the same."""
    status: Object = {"phase": moment.phase}
    status["conditions"] = conditions(old.get("conditions", []), moment.conditions, stamp)
    status |= {**addresses, "startTime": old.get("startTime", stamp)}
    kept = {name: old[name] for name in ("nominatedNodeName", "reason", "message") if name in old}
    return {**status, **kept, "containerStatuses": moment.containers, "qosClass": old["qosClass"]}


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


def creating(names: list[str]) -> Conditions:
    why = ("False", "ContainersNotReady", f"containers with unready status: [{' '.join(names)}]")
    return {
        "PodReadyToStartContainers": ("False", "", ""),
        "Initialized": ("True", "", ""),
        "Ready": why,
        "ContainersReady": why,
    }


def running() -> Conditions:
    names = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    return dict.fromkeys(names, ("True", "", ""))


def ended(*, succeeded: bool, is_last: bool) -> Conditions:
    """`is_last`: nothing of the pod is left on its node."""
    why = "PodCompleted" if succeeded else "PodFailed"
    return {
        "PodReadyToStartContainers": ("False" if is_last else "True", "", ""),
        "Initialized": ("True", "PodCompleted" if succeeded else "", ""),
        "Ready": ("False", why, ""),
        "ContainersReady": ("False", why, ""),
    }


def container(spec: Object, state: Object, *, identifier: str = "") -> Object:
    """Of one container; `identifier` when it has been started."""
    is_running = "running" in state
    found: Object = {"name": spec["name"], "state": state, "lastState": {}, "ready": is_running}
    found |= {"restartCount": 0, "image": spec["image"], "imageID": IMAGE_ID if identifier else ""}
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


def terminated(code: int, started: str, finished: str, identifier: str) -> Object:
    reason = "Completed" if code == 0 else "Error"
    times = {"startedAt": started, "finishedAt": finished}
    return {"terminated": {"exitCode": code, "reason": reason, **times, "containerID": identifier}}
