"""Queues of Kueue: Jobs and pods with the label of a queue wait until the queue has room for their requests.

Kueue is no part of Kubernetes, and no trace shows it. What it does here is what its documentation and its sources say
(kueue.sigs.k8s.io, Run Plain Pods), and what it did on a real cluster: a webhook suspends Jobs and gates pods as they
are created, with a finalizer that it removes when they have ended; it admits one after another, in the order in which
they came, and whoever finds no room waits, with all behind; a Job that someone else has resumed is suspended again.
Pods of a group are admitted together, once as many as their annotation says are there; a pod that takes the place of
one that ended in an admitted group has its room. Priorities and preemption are left out.
"""

from __future__ import annotations

from decimal import Decimal

from tests.kubernetes import quantities
from tests.kubernetes.controllers import NEVER
from tests.kubernetes.kinds import JOB, POD, Key, Kind, Object
from tests.kubernetes.nodes import Amounts, added, requests
from tests.kubernetes.registry import Registry

QUEUE, MANAGED = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/managed"
GROUP, SIZE = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
OWNER = "kueue.x-k8s.io/job-uid"
# What Kueue said, in August 2026.
NO_ROOM = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor all, 200m more needed"
GATE = {"name": "kueue.x-k8s.io/admission"}
TERMINAL = ("Succeeded", "Failed")


class Queues:
    def __init__(self, registry: Registry) -> None:
        self._registry, self._seen = registry, 0
        self._quotas: dict[tuple[str, str], Amounts] = {}  # by namespace and queue
        self._waiting: list[Key] = []  # in the order in which they came
        self._admitted: dict[str, Amounts] = {}  # what each holds, by uid
        registry.webhooks.append(self._on_creation)

    def limit(self, namespace: str, queue: str, amounts: dict[str, str]) -> None:
        """Make the queue, or change what there is for all that it has admitted."""
        with self._registry.store.changed:
            self._quotas[namespace, queue] = {name: quantities.value(each) for name, each in amounts.items()}
            self._registry.store.changed.notify_all()

    def pending(self, namespace: str, queue: str) -> Object:
        """Workloads that wait, in their order, as the visibility API shows them: each is owned by its Job or pod."""
        store = self._registry.store
        with store.changed:
            keys = [key for key in self._waiting if key.namespace == namespace]
            found = [(key, one) for key in keys if (one := store.get(key)) and _queue(one) == queue]
        items = [
            {
                "metadata": {
                    "name": f"{key.kind.name.lower()}-{key.name}",
                    "namespace": namespace,
                    "ownerReferences": [
                        {"kind": key.kind.name, "name": key.name, "uid": one["metadata"]["uid"]}
                    ],
                },
                "priority": 0,
                "localQueueName": queue,
                "positionInClusterQueue": number,
                "positionInLocalQueue": number,
            }
            for number, (key, one) in enumerate(found)
        ]
        version = "visibility.kueue.x-k8s.io/v1beta1"
        return {"kind": "PendingWorkloadsSummary", "apiVersion": version, "metadata": {}, "items": items}

    def workloads(self, namespace: str) -> list[Object]:
        """Workloads that wait, with the condition in which Kueue says why."""
        waiting = (
            (key, self._registry.store.get(key)) for key in self._waiting if key.namespace == namespace
        )
        condition = {"type": "QuotaReserved", "status": "False", "message": NO_ROOM}
        return [
            {
                "metadata": {"name": _group(one) or key.name, "labels": {OWNER: one["metadata"]["uid"]}},
                "status": {"conditions": [condition]},
            }
            for key, one in waiting
            if one is not None
        ]

    def step(self, _now: float) -> float:
        store = self._registry.store
        changes, self._seen = store.since(self._seen), store.revision
        for key in dict.fromkeys(change.key for change in changes if change.key.kind in (JOB, POD)):
            self._look(key)
        for namespace, queue in self._quotas:
            self._admit(namespace, queue)
        return NEVER

    def _on_creation(self, kind: Kind, found: Object) -> None:
        """Change a new object as the webhook does."""
        labels = found["metadata"].get("labels", {})
        if kind is JOB and labels.get(QUEUE):
            found["spec"]["suspend"] = True
        owners = found["metadata"].get("ownerReferences", [])
        if kind is POD and labels.get(QUEUE) and not any(owner.get("controller") for owner in owners):
            found["metadata"]["labels"] = {**labels, MANAGED: "true"}
            found["metadata"]["finalizers"] = [*found["metadata"].get("finalizers", []), MANAGED]
            found["spec"]["schedulingGates"] = [*found["spec"].get("schedulingGates", []), GATE]

    def _look(self, key: Key) -> None:
        """Take note of what has come, has gone, or was resumed by someone else."""
        found = self._registry.store.get(key)
        if found is None or not found["metadata"].get("labels", {}).get(QUEUE):
            return
        uid = found["metadata"]["uid"]
        if MANAGED in found["metadata"].get("finalizers", []) and _will_not_run(found):
            self._registry.patch(key, _let_go)
            return
        if (
            key.kind is JOB
            and not found["spec"].get("suspend")
            and uid not in self._admitted
            and not _over(found)
        ):
            self._registry.patch(key, lambda job: {**job, "spec": {**job["spec"], "suspend": True}})
            found = self._registry.read(key)
        if key not in self._waiting and uid not in self._admitted and _waits(key.kind, found):
            self._waiting.append(key)

    def _admit(self, namespace: str, queue: str) -> None:
        store = self._registry.store
        there = {one["metadata"]["uid"]: one for kind in (JOB, POD) for one in store.all(kind, namespace)}
        holding = [
            amounts
            for uid, amounts in self._admitted.items()
            if uid in there and _queue(there[uid]) == queue and not _over(there[uid])
        ]
        for key in list(self._waiting):
            if key not in self._waiting:  # it was admitted with another one
                continue
            found = store.get(key)
            if found is None or not _waits(key.kind, found):
                self._waiting.remove(key)
            elif key.namespace == namespace and _queue(found) == queue:
                together = self._members(key, found)
                if not together:
                    continue  # a group that is not complete takes no turn
                wanted = [
                    requests(one if each.kind is POD else one["spec"]["template"])
                    for each in together
                    if (one := store.get(each)) is not None
                ]
                if not _fits(added(*holding, *wanted), self._quotas[namespace, queue]):
                    return  # and whoever came later waits too
                for each, amounts in zip(together, wanted, strict=True):
                    holding.append(amounts)
                    self._waiting.remove(each)
                    self._admitted[self._registry.read(each)["metadata"]["uid"]] = amounts
                    self._registry.patch(each, _released if each.kind is POD else _resumed)

    def _members(self, key: Key, found: Object) -> list[Key]:
        """Those that are admitted with this one; none as long as its group is not complete."""
        group = _group(found)
        if not group:
            return [key]
        there = self._registry.store.all(POD, key.namespace)
        admitted = [one for one in there if _group(one) == group and one["metadata"]["uid"] in self._admitted]
        if admitted:
            return [key]
        waiting = [each for each in self._waiting if _group(self._registry.store.get(each)) == group]
        return waiting if len(waiting) >= int(found["metadata"]["annotations"][SIZE]) else []


def _queue(found: Object) -> str:
    return str(found["metadata"].get("labels", {}).get(QUEUE, ""))


def _group(found: Object | None) -> str:
    return str(found["metadata"].get("labels", {}).get(GROUP, "")) if found is not None else ""


def _waits(kind: Kind, found: Object) -> bool:
    if "deletionTimestamp" in found["metadata"] or _over(found):
        return False
    return (
        bool(found["spec"].get("suspend"))
        if kind is JOB
        else GATE in found["spec"].get("schedulingGates", [])
    )


def _over(found: Object) -> bool:
    status = found.get("status", {})
    ends = [one for one in status.get("conditions", []) if one["type"] in ("Complete", "Failed")]
    return status.get("phase") in TERMINAL or any(one["status"] == "True" for one in ends)


def _will_not_run(pod: Object) -> bool:
    return _over(pod) or ("deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName"))


def _let_go(pod: Object) -> Object:
    left = [each for each in pod["metadata"]["finalizers"] if each != MANAGED]
    return {**pod, "metadata": {**pod["metadata"], "finalizers": left}}


def _fits(amounts: Amounts, quota: Amounts) -> bool:
    return all(amounts.get(name, Decimal(0)) <= most for name, most in quota.items())


def _resumed(job: Object) -> Object:
    return {**job, "spec": {**job["spec"], "suspend": False}}


def _released(pod: Object) -> Object:
    gates = [gate for gate in pod["spec"]["schedulingGates"] if gate != GATE]
    spec = {name: value for name, value in pod["spec"].items() if name != "schedulingGates"}
    return {**pod, "spec": {**spec, **({"schedulingGates": gates} if gates else {})}}
