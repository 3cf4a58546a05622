"""Gives pods a node."""

from __future__ import annotations

from decimal import Decimal

from tests.kubernetes import pod_status, quantities
from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.events import Events
from tests.kubernetes.kinds import NODE, POD, Key, Object
from tests.kubernetes.registry import TERMINAL, Registry
from tests.kubernetes.selectors import matches_labels

NODE_NAME = "node-1"
CAPACITY = {"cpu": "16", "memory": "64Gi", "pods": "1100"}
LABELS = {"kubernetes.io/hostname": NODE_NAME, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
NO_VICTIMS = "1 No preemption victims found for incoming pod."
NO_HELP = "1 Preemption is not helpful for scheduling."


def add_node(registry: Registry) -> None:
    registry.create(NODE, "", {"metadata": {"name": NODE_NAME, "labels": LABELS}, "spec": {}})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    amounts = {"capacity": CAPACITY, "allocatable": CAPACITY}
    registry.update(Key(NODE, "", NODE_NAME), {"status": {**amounts, "conditions": [ready]}}, "status")


class Scheduler:
    def __init__(self, registry: Registry, events: Events, pace: Pace) -> None:
        self._registry, self._events, self._pace = registry, events, pace
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
        elif not self._matches(pod):
            self._refuse(key, pod, "1 node(s) didn't match Pod's node affinity/selector", NO_HELP)
        elif short := self._short_of(pod):
            lacks = ["1 Too many pods" if name == "pods" else f"1 Insufficient {name}" for name in short]
            self._refuse(key, pod, ", ".join(lacks), NO_VICTIMS)
        else:
            del self._waiting[key]
            where = f"{key.namespace}/{key.name} to {NODE_NAME}"
            self._events.of_scheduler(pod, "Scheduled", f"Successfully assigned {where}", "Binding")
            self._write(key, {**pod, "spec": {**pod["spec"], "nodeName": NODE_NAME}}, pod_status.SCHEDULED)

    def _matches(self, pod: Object) -> bool:
        labels = self._registry.read(Key(NODE, "", NODE_NAME))["metadata"].get("labels") or {}
        return matches_labels({"matchLabels": pod["spec"].get("nodeSelector")}, labels)

    def _refuse(self, key: Key, pod: Object, why: str, preemption: str) -> None:
        """It is said once, as long as it is for the same reason."""
        message = f"0/1 nodes are available: {why}. preemption: 0/1 nodes are available: {preemption}"
        if any(one.get("message") == message for one in pod["status"].get("conditions", [])):
            return
        self._events.of_scheduler(pod, "FailedScheduling", message, "Scheduling")
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
