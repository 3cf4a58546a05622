"""Disruption budgets: how many of some pods must stay when others are evicted."""

from __future__ import annotations

import math
from typing import NamedTuple

from tests.kubernetes.clock import Clock
from tests.kubernetes.controllers import NEVER
from tests.kubernetes.job_pods import is_ready, is_terminating
from tests.kubernetes.kinds import BUDGET, POD, Key, Object
from tests.kubernetes.selectors import matches_labels
from tests.kubernetes.store import Store


class Standing(NamedTuple):
    """Of the pods that a budget guards."""

    healthy: int
    needed: int
    expected: int

    @property
    def allowed(self) -> int:
        return max(self.healthy - self.needed, 0)


def standing(store: Store, budget: Object) -> Standing:
    guarded = [one for one in store.all(POD, budget["metadata"]["namespace"]) if guards(budget, one)]
    healthy = sum(is_ready(one) and not is_terminating(one) for one in guarded)
    spec = budget["spec"]
    if "minAvailable" in spec:
        needed = _number(spec["minAvailable"], len(guarded))
    else:
        needed = len(guarded) - _number(spec["maxUnavailable"], len(guarded))
    return Standing(healthy, needed, len(guarded))


def guards(budget: Object, pod: Object) -> bool:
    return matches_labels(budget["spec"]["selector"], pod["metadata"].get("labels") or {})


def _number(value: int | str, pods: int) -> int:
    return math.ceil(int(value[:-1]) * pods / 100) if isinstance(value, str) else value


class Budgets:
    """Keeps how they stand written in their status."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock, self._seen = store, clock, 0

    def step(self, _now: float) -> float:
        changes, self._seen = self._store.since(self._seen), self._store.revision
        for namespace in {one.key.namespace for one in changes if one.key.kind in (POD, BUDGET)}:
            for budget in self._store.all(BUDGET, namespace):
                key = Key(BUDGET, namespace, budget["metadata"]["name"])
                self._store.put(key, {**budget, "status": self._status(budget)})
        return NEVER

    def _status(self, budget: Object) -> Object:
        found, generation = standing(self._store, budget), budget["metadata"]["generation"]
        return {
            "observedGeneration": generation,
            "disruptionsAllowed": found.allowed,
            "currentHealthy": found.healthy,
            "desiredHealthy": found.needed,
            "expectedPods": found.expected,
            "conditions": [self._condition(budget["status"], found, generation)],
        }

    def _condition(self, old: Object, found: Standing, generation: int) -> Object:
        said, why = ("True", "SufficientPods") if found.allowed else ("False", "InsufficientPods")
        before = [one for one in old.get("conditions", []) if one["status"] == said]
        is_known = before and old["observedGeneration"] == generation
        since = before[0]["lastTransitionTime"] if is_known else self._clock.stamp()
        condition = {"type": "DisruptionAllowed", "status": said, "observedGeneration": generation}
        return {**condition, "lastTransitionTime": since, "reason": why, "message": ""}
