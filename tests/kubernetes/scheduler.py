"""Gives pods a node, if need be that of less important ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.kubernetes import pod_status, preemption
from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.disruption import mark
from tests.kubernetes.events import Events
from tests.kubernetes.kinds import NODE, POD, Key, Object
from tests.kubernetes.nodes import Amounts, Room, added, requests, short_of, untolerated
from tests.kubernetes.preemption import priority
from tests.kubernetes.registry import Deletion, Registry
from tests.kubernetes.selectors import matches_labels
from tests.kubernetes.store import Change

OTHER_LABELS = "node(s) didn't match Pod's node affinity/selector"
NO_HELP = "Preemption is not helpful for scheduling"
PREEMPTED = (
    "True",
    "PreemptionByScheduler",
    "default-scheduler: preempting to accommodate a higher priority pod",
)


class Scheduler:
    def __init__(self, registry: Registry, events: Events, pace: Pace) -> None:
        self._registry, self._events, self._pace = registry, events, pace
        self._seen = 0
        self._room = Room()
        self._since: dict[Key, float] = {}  # of pods without a node
        self._nominated: set[Key] = set()  # of these, for whom others have to go
        self._refused: dict[
            Key, set[str]
        ] = {}  # of these, who is tried again when there is more of something

    def step(self, now: float) -> float:
        store = self._registry.store
        for change in store.since(self._seen):
            self._hear(change, now)
        self._seen = store.revision
        due = NEVER
        for key in self._in_order():
            if (ready := self._since[key] + self._pace.schedule) > now:
                due = min(due, ready)
            else:
                self._place(key)
        return due

    def _hear(self, change: Change, now: float) -> None:
        if change.key.kind is NODE:
            self._refused.clear()
        if change.key.kind is not POD:
            return
        if more := self._room.hear(change):
            self._refused = {key: short for key, short in self._refused.items() if not short & more}
        if change.type == "DELETED":
            self._forget(change.key)
        elif not (change.object["spec"].get("nodeName") or change.object["spec"].get("schedulingGates")):
            self._since.setdefault(change.key, now)

    def _in_order(self) -> list[Key]:
        """The most important first, then who has waited longest."""
        left = [key for key in self._since if key not in self._refused]
        pods = {key: self._registry.store.get(key) for key in left}
        return sorted(left, key=lambda key: (-priority(pods[key]) if pods[key] else 0, self._since[key]))

    def _place(self, key: Key) -> None:
        pod = self._registry.store.get(key)
        if pod is None or pod["spec"].get("nodeName"):
            self._forget(key)
            return
        nodes = self._registry.store.all(NODE)
        unfit = {node["metadata"]["name"]: self._unfit(node, pod) for node in nodes}
        fitting = [name for name, reasons in unfit.items() if not reasons]
        if fitting:
            self._forget(key)
            self._bind(key, pod, min(fitting, key=lambda name: self._room.used(name).get("pods", 0)))
        else:
            self._refused[key] = {name for node in nodes for name in self._short_of(node, pod)}
            self._make_room(key, pod, nodes, unfit)

    def _forget(self, key: Key) -> None:
        self._since.pop(key, None)
        self._nominated.discard(key)
        self._refused.pop(key, None)

    def _unfit(self, node: Object, pod: Object) -> list[str]:
        """Why the pod can't have it, in the scheduler's words."""
        if not matches_labels({"matchLabels": pod["spec"].get("nodeSelector")}, node["metadata"]["labels"]):
            return [OTHER_LABELS]
        if (terms := _required_terms(pod)) and not any(_matches(node, term) for term in terms):
            return [OTHER_LABELS]
        if taint := untolerated(node, pod, ("NoSchedule", "NoExecute")):
            return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
        return [
            "Too many pods" if name == "pods" else f"Insufficient {name}"
            for name in self._short_of(node, pod)
        ]

    def _short_of(self, node: Object, pod: Object) -> list[str]:
        return short_of(node, self._used(node, pod), requests(pod))

    def _used(self, node: Object, pod: Object) -> Amounts:
        """Also by those that wait for its pods to end, unless they are less important."""
        name, uid = node["metadata"]["name"], pod["metadata"]["uid"]
        waiting = [one for key in self._nominated if (one := self._registry.store.get(key)) is not None]
        nominated = [
            requests(one)
            for one in waiting
            if one["status"]["nominatedNodeName"] == name
            and one["metadata"]["uid"] != uid
            and priority(one) >= priority(pod)
        ]
        return added(self._room.used(name), *nominated) if nominated else self._room.used(name)

    def _bind(self, key: Key, pod: Object, node: str) -> None:
        where = f"{key.namespace}/{key.name} to {node}"
        self._events.of_scheduler(pod, "Scheduled", f"Successfully assigned {where}", "Binding")
        bound = {**pod, "spec": {**pod["spec"], "nodeName": node}}
        self._write(key, bound, pod_status.SCHEDULED)
        self._room.hear(self._registry.store.changes[-1])

    def _make_room(self, key: Key, pod: Object, nodes: list[Object], unfit: dict[str, list[str]]) -> None:
        if self._waits_for_victims(pod):
            return
        why = _counted(len(nodes), [reason for reasons in unfit.values() for reason in reasons])
        if pod["spec"].get("preemptionPolicy") == "Never":
            self._refuse(key, pod, f"{why} preemption: not eligible due to preemptionPolicy=Never.")
            return
        found = {node["metadata"]["name"]: self._victims(node, pod, unfit) for node in nodes}
        possible = {name: pods for name, pods in found.items() if pods and not isinstance(pods[0], str)}
        if possible:
            node = min(possible, key=lambda name: (max(map(priority, possible[name])), len(possible[name])))
            self._preempt(key, pod, node, possible[node], why)
        else:
            reasons = [str(reason) for pods in found.values() for reason in pods]
            self._refuse(key, pod, f"{why} preemption: {_counted(len(nodes), reasons)}")

    def _victims(self, node: Object, pod: Object, unfit: dict[str, list[str]]) -> list[Any]:
        name = node["metadata"]["name"]
        if any(reason == OTHER_LABELS or "taint" in reason for reason in unfit[name]):
            return [NO_HELP]
        return preemption.victims(node, self._used(node, pod), self._room.pods(name), pod)

    def _waits_for_victims(self, pod: Object) -> bool:
        node = pod["status"].get("nominatedNodeName", "")
        pods = self._room.pods(node)
        return any("deletionTimestamp" in one["metadata"] and priority(one) < priority(pod) for one in pods)

    def _preempt(self, key: Key, pod: Object, node: str, pods: list[Object], why: str) -> None:
        self._nominated.add(key)
        self._events.of_scheduler(pod, "FailedScheduling", why, "Scheduling")
        for victim in pods:
            mark(self._registry, victim, PREEMPTED)
        nominated = {**pod, "status": {**pod["status"], "nominatedNodeName": node}}
        self._write(key, nominated, {"PodScheduled": ("False", "Unschedulable", why)})
        for victim in pods:
            self._registry.delete(_key(victim), Deletion())
            message = f"Preempted by pod {pod['metadata']['uid']} on node {node}"
            self._events.of_scheduler(victim, "Preempted", message, "Preempting", related=pod)

    def _refuse(self, key: Key, pod: Object, message: str) -> None:
        """It is said once, as long as it is for the same reason."""
        if any(one.get("message") == message for one in pod["status"].get("conditions", [])):
            return
        self._events.of_scheduler(pod, "FailedScheduling", message, "Scheduling")
        self._write(key, pod, {"PodScheduled": ("False", "Unschedulable", message)})

    def _write(self, key: Key, pod: Object, conditions: pod_status.Conditions) -> None:
        stamp, old = self._registry.clock.stamp(), pod["status"]
        found = pod_status.conditions(old.get("conditions", []), conditions, stamp)
        self._registry.store.put(key, {**pod, "status": {**old, "conditions": found}})


def _counted(nodes: int, reasons: Iterable[str]) -> str:
    counted = sorted(f"{count} {reason}" for reason, count in Counter(reasons).items())
    return f"0/{nodes} nodes are available: {', '.join(counted)}."


def _key(pod: Object) -> Key:
    return Key(POD, pod["metadata"]["namespace"], pod["metadata"]["name"])


def _required_terms(pod: Object) -> list[Object]:
    """Alternatives of the node affinity that is required."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required.get("nodeSelectorTerms") or []


def _matches(node: Object, term: Object) -> bool:
    fields = {"matchExpressions": term.get("matchFields")}
    name = {"metadata.name": node["metadata"]["name"]}
    return matches_labels(term, node["metadata"]["labels"]) and matches_labels(fields, name)
