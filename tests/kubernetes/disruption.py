"""Pods that have to go for no fault of their own: how that is said on them, and who goes with a node that is lost."""

from __future__ import annotations

from tests.kubernetes import pod_status
from tests.kubernetes.clock import moment
from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.kinds import NODE, POD, Key, Object
from tests.kubernetes.nodes import pods_on, tolerated_for
from tests.kubernetes.registry import TERMINAL, Deletion, Registry

Reason = tuple[str, str, str]
BY_TAINT: Reason = ("True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
BY_COLLECTOR: Reason = ("True", "DeletionByPodGC", "PodGC: node no longer exists")


def mark(registry: Registry, pod: Object, why: Reason, phase: str = "") -> Object:
    """At the end of its conditions, where the node puts it into its own order."""
    old = pod["status"]
    condition = pod_status.conditions([], {"DisruptionTarget": why}, registry.clock.stamp())
    others = [one for one in old.get("conditions", []) if one["type"] != "DisruptionTarget"]
    status = {**old, "phase": phase or old["phase"], "conditions": [*others, *condition]}
    return registry.store.put(_key(pod), {**pod, "status": status})


class Taints:
    """Deletes pods from nodes that are not for them any more, when they have been tolerated for long enough."""

    def __init__(self, registry: Registry, pace: Pace) -> None:
        self._registry, self._pace, self._seen = registry, pace, 0
        self._due = NEVER

    def step(self, now: float) -> float:
        store = self._registry.store
        changes, self._seen = store.since(self._seen), store.revision
        if self._due <= now or any(one.key.kind in (NODE, POD) for one in changes):
            self._due = min((self._look_at(node, now) for node in store.all(NODE)), default=NEVER)
        return self._due

    def _look_at(self, node: Object, now: float) -> float:
        """When there is more to do."""
        taints = [one for one in node["spec"].get("taints", []) if one["effect"] == "NoExecute"]
        due = NEVER
        for pod in pods_on(self._registry.store, node["metadata"]["name"]) if taints else ():
            if "deletionTimestamp" in pod["metadata"] or pod["status"]["phase"] in TERMINAL:
                continue
            goes = min(self._goes(taint, pod) for taint in taints)
            if goes <= now:
                marked = mark(self._registry, pod, BY_TAINT)
                self._registry.delete(_key(marked), Deletion())
            else:
                due = min(due, goes)
        return due

    def _goes(self, taint: Object, pod: Object) -> float:
        return moment(taint["timeAdded"]) + min(tolerated_for(taint, pod), self._pace.tolerance)


class PodCollector:
    """Removes the pods of nodes that are no more."""

    def __init__(self, registry: Registry, pace: Pace) -> None:
        self._registry, self._pace, self._seen = registry, pace, 0
        self._due: dict[str, float] = {}  # by node

    def step(self, now: float) -> float:
        store = self._registry.store
        for change in store.since(self._seen):
            if change.key.kind is NODE and change.type == "DELETED":
                self._due[change.key.name] = now + self._pace.quarantine
        self._seen = store.revision
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            for pod in pods_on(store, name):
                self._remove(pod)
        return min(self._due.values(), default=NEVER)

    def _remove(self, pod: Object) -> None:
        if pod["status"]["phase"] not in TERMINAL:
            mark(self._registry, pod, BY_COLLECTOR, "Failed")
        self._registry.delete(_key(pod), Deletion(grace=0))


def _key(pod: Object) -> Key:
    return Key(POD, pod["metadata"]["namespace"], pod["metadata"]["name"])
