"""Evictions: a deletion that a disruption budget may refuse, and that says on the pod why it goes."""

from __future__ import annotations

import json

from tests.kubernetes import errors
from tests.kubernetes.api import Api, Target
from tests.kubernetes.budgets import guards, standing
from tests.kubernetes.disruption import mark
from tests.kubernetes.kinds import BUDGET, Object
from tests.kubernetes.messages import Answer, Request, told
from tests.kubernetes.registry import Deletion

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
                mark(self._registry, pod, REASON)
                self._registry.delete(target.key, Deletion(grace=options.get("gracePeriodSeconds")))
        return told(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        )

    def _ask_budgets(self, pod: Object) -> None:
        """What does not run can go without asking."""
        if pod["status"]["phase"] != "Running" or "deletionTimestamp" in pod["metadata"]:
            return
        store = self._registry.store
        for budget in store.all(BUDGET, pod["metadata"]["namespace"]):
            found = standing(store, budget)
            if guards(budget, pod) and not found.allowed:
                raise _refused(budget["metadata"]["name"], found.needed, found.healthy)


def _refused(budget: str, needed: int, healthy: int) -> errors.RefusedError:
    why = f"The disruption budget {budget} needs {needed} healthy pods and has {healthy} currently"
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    return errors.RefusedError(429, "TooManyRequests", REFUSAL, details)
