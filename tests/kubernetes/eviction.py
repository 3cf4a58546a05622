"""Evictions: a deletion that a disruption budget may refuse, and that says on the pod why it goes."""

from __future__ import annotations

import json

from tests.kubernetes import errors, pod_status
from tests.kubernetes.api import Api, Target
from tests.kubernetes.kinds import BUDGET, POD, Object
from tests.kubernetes.messages import Answer, Request, told
from tests.kubernetes.registry import Deletion
from tests.kubernetes.selectors import matches_labels

REASON = ("True", "EvictionByEvictionAPI", "Eviction API: evicting")
REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."


class Evictions:
    def __init__(self, api: Api) -> None:
        self._registry = api.registry
        api.parts["POST", "pods", "eviction"] = self.answer

    def answer(self, target: Target, request: Request) -> Answer:
        options = json.loads(request.body).get("deleteOptions") or {}
        with self._registry.store.changed:
            pod = self._registry.read(target.key)
            self._ask_budgets(pod)
            if not options.get("dryRun"):
                self._mark(target, pod)
                self._registry.delete(target.key, Deletion(grace=options.get("gracePeriodSeconds")))
        return told(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        )

    def _mark(self, target: Target, pod: Object) -> None:
        stamp, old = self._registry.clock.stamp(), pod["status"]
        conditions = [
            *old.get("conditions", []),
            *pod_status.conditions([], {"DisruptionTarget": REASON}, stamp),
        ]
        self._registry.store.put(target.key, {**pod, "status": {**old, "conditions": conditions}})

    def _ask_budgets(self, pod: Object) -> None:
        store, namespace = self._registry.store, pod["metadata"]["namespace"]
        for budget in store.all(BUDGET, namespace):
            selector = budget["spec"]["selector"]
            if not matches_labels(selector, pod["metadata"].get("labels") or {}):
                continue
            others = store.all(POD, namespace)
            guarded = [one for one in others if matches_labels(selector, one["metadata"].get("labels") or {})]
            healthy = sum(one["status"]["phase"] == "Running" for one in guarded)
            needed = _needed(budget["spec"], len(guarded))
            if healthy <= needed:
                raise _refused(budget["metadata"]["name"], needed, healthy)


def _needed(spec: Object, guarded: int) -> int:
    """Numbers only: the double knows no percentages."""
    return int(spec["minAvailable"]) if "minAvailable" in spec else guarded - int(spec["maxUnavailable"])


def _refused(budget: str, needed: int, healthy: int) -> errors.RefusedError:
    why = f"The disruption budget {budget} needs {needed} healthy pods and has {healthy} currently"
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    return errors.RefusedError(429, "TooManyRequests", REFUSAL, details)
