"""Nodes: what they have for pods, what pods have asked for of it, and how a node is lost."""

from __future__ import annotations

from decimal import Decimal

from tests.kubernetes import pod_status, quantities
from tests.kubernetes.kinds import NODE, POD, Key, Object
from tests.kubernetes.registry import TERMINAL, Registry
from tests.kubernetes.store import Change, Store

NODE_NAME = "node-1"
CAPACITY = {"cpu": "16", "memory": "64Gi", "pods": "1100"}
UNREACHABLE = "node.kubernetes.io/unreachable"
SILENT = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
Amounts = dict[str, Decimal]


def add_node(registry: Registry, name: str = NODE_NAME, capacity: dict[str, str] | None = None) -> None:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    registry.create(NODE, "", {"metadata": {"name": name, "labels": labels}, "spec": {}})
    amounts = {**CAPACITY, **(capacity or {})}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    registry.update(Key(NODE, "", name), {"status": status}, "status")


def lose_node(registry: Registry, name: str) -> None:
    """As the cluster sees it some time after the node has fallen silent: it and its pods are not ready any more."""
    key, stamp = Key(NODE, "", name), registry.clock.stamp()
    node = registry.read(key)
    silent = {"type": "Ready", "status": "Unknown", "lastTransitionTime": stamp, **SILENT}
    taints = [
        {"key": UNREACHABLE, "effect": effect, "timeAdded": stamp} for effect in ("NoSchedule", "NoExecute")
    ]
    spec = {**node["spec"], "taints": [*node["spec"].get("taints", []), *taints]}
    registry.store.put(key, {**node, "spec": spec, "status": {**node["status"], "conditions": [silent]}})
    for pod in pods_on(registry.store, name):
        conditions = pod_status.conditions(pod["status"].get("conditions", []), pod_status.UNREACHABLE, stamp)
        found = {**pod, "status": {**pod["status"], "conditions": conditions}}
        registry.store.put(Key(POD, pod["metadata"]["namespace"], pod["metadata"]["name"]), found)


def pods_on(store: Store, node: str) -> list[Object]:
    return [pod for pod in store.all(POD) if pod["spec"].get("nodeName") == node]


class Room:
    """What pods that have not ended have asked for, by node."""

    def __init__(self) -> None:
        self._pods: dict[Key, Object] = {}
        self._used: dict[str, Amounts] = {}

    def hear(self, change: Change) -> set[str]:
        """Of what there is more now."""
        before = self._pods.pop(change.key, None)
        if before is not None:
            self._add(before, -1)
        pod = change.object
        is_there = change.type != "DELETED" and pod["status"]["phase"] not in TERMINAL
        if is_there and pod["spec"].get("nodeName"):
            self._pods[change.key] = pod
            self._add(pod, 1)
        return set(requests(before)) if before is not None and change.key not in self._pods else set()

    def pods(self, node: str) -> list[Object]:
        return [pod for pod in self._pods.values() if pod["spec"]["nodeName"] == node]

    def used(self, node: str) -> Amounts:
        return self._used.get(node, {})

    def _add(self, pod: Object, sign: int) -> None:
        used = self._used.setdefault(pod["spec"]["nodeName"], {})
        for name, amount in requests(pod).items():
            used[name] = used.get(name, Decimal(0)) + sign * amount


def short_of(node: Object, used: Amounts, wanted: Amounts) -> list[str]:
    """What of that the node has too little of beside what is used."""
    there = node["status"]["allocatable"]
    return [
        name
        for name, amount in wanted.items()
        if used.get(name, Decimal(0)) + amount > quantities.value(there.get(name, "0"))
    ]


def requests(pod: Object) -> Amounts:
    return added({"pods": Decimal(1)}, *(_asked(one) for one in pod["spec"]["containers"]))


def added(*amounts: Amounts) -> Amounts:
    total: Amounts = {}
    for one in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


def _asked(container: Object) -> Amounts:
    return {
        name: quantities.value(amount) for name, amount in container["resources"].get("requests", {}).items()
    }


def untolerated(node: Object, pod: Object, effects: tuple[str, ...]) -> Object | None:
    """A taint of these effects that the pod does not tolerate."""
    for taint in node["spec"].get("taints", []):
        if taint["effect"] in effects and tolerated_for(taint, pod) == 0:
            return dict(taint)
    return None


def tolerated_for(taint: Object, pod: Object) -> float:
    """Seconds; 0 where it is not."""
    seconds = [
        one.get("tolerationSeconds", float("inf"))
        for one in pod["spec"].get("tolerations", [])
        if _fits(one, taint)
    ]
    return min(seconds, default=0)


def _fits(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")
