"""Gives pods a node."""

from __future__ import annotations

from decimal import Decimal

from tests.kubernetes import pod_status, quantities
from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.kinds import NODE, POD, Key, Object
from tests.kubernetes.registry import TERMINAL, Registry

NODE_NAME = "node-1"
CAPACITY = {"cpu": "16", "memory": "64Gi", "pods": "1100"}


def add_node(registry: Registry) -> None:
    registry.create(NODE, "", {"metadata": {"name": NODE_NAME}, "spec": {}})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    amounts = {"capacity": CAPACITY, "allocatable": CAPACITY}
    registry.update(Key(NODE, "", NODE_NAME), {"status": {**amounts, "conditions": [ready]}}, "status")


class Scheduler:
    def __init__(self, registry: Registry, pace: Pace) -> None:
        self._registry, self._pace = registry, pace
        self._seen = 0
        self._waiting: dict[Key, float] = {}  # since when

    def step(self, now: float) -> float:
        store = self._registry.store
        for change in store.since(self._seen):
            if change.key.kind is POD and not change.object["spec"].get("nodeName"):
                self._waiting.setdefault(change.key, now)
        self._seen = store.revision
        due = NEVER
        for key, since in sorted(self._waiting.items(), key=lambda one: one[1]):
            if since + self._pace.schedule > now:
                due = min(due, since + self._pace.schedule)
            else:
                self._place(key)
        return due

    def _place(self, key: Key) -> None:
        pod = self._registry.store.get(key)
        if pod is None or pod["spec"].get("nodeName"):
            del self._waiting[key]
        elif short := self._short_of(pod):
            self._refuse(key, pod, short)
        else:
            del self._waiting[key]
            self._write(key, {**pod, "spec": {**pod["spec"], "nodeName": NODE_NAME}}, pod_status.SCHEDULED)

    def _refuse(self, key: Key, pod: Object, short: list[str]) -> None:
        lacks = ", ".join("1 Too many pods" if name == "pods" else f"1 Insufficient {name}" for name in short)
        message = (
            f"0/1 nodes are available: {lacks}. preemption: 0/1 nodes are available: 1 No preemption victims found "
            "for incoming pod."
        )
        self._write(key, pod, {"PodScheduled": ("False", "Unschedulable", message)})

    def _write(self, key: Key, pod: Object, conditions: pod_status.Conditions) -> None:
        stamp, old = self._registry.clock.stamp(), pod["status"]
        found = pod_status.conditions(old.get("conditions", []), conditions, stamp)
        self._registry.store.put(key, {**pod, "status": {**old, "conditions": found}})

    def _short_of(self, pod: Object) -> list[str]:
        wanted = requests(pod)
        capacity = self._registry.read(Key(NODE, "", NODE_NAME))["status"]["allocatable"]
        used: dict[str, Decimal] = {}
        for other in self._registry.store.all(POD):
            if other["spec"].get("nodeName") and other["status"]["phase"] not in TERMINAL:
                for name, amount in requests(other).items():
                    used[name] = used.get(name, Decimal(0)) + amount
        return [
            name
            for name, amount in wanted.items()
            if used.get(name, Decimal(0)) + amount > quantities.value(capacity.get(name, "0"))
        ]


def requests(pod: Object) -> dict[str, Decimal]:
    total = {"pods": Decimal(1)}
    for container in pod["spec"]["containers"]:
        for name, amount in container["resources"].get("requests", {}).items():
            total[name] = total.get(name, Decimal(0)) + quantities.value(amount)
    return total
