"""The pods of a Job: which they are, how they stand, and what its controller does to them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from tests.kubernetes.errors import RefusedError
from tests.kubernetes.events import Events
from tests.kubernetes.kinds import JOB, POD, Key, Object
from tests.kubernetes.registry import TERMINAL, Deletion, Registry
from tests.kubernetes.selectors import matches_labels

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


@dataclass
class Pods:
    """Of one Job. Those that have ended are here until they are counted, which their finalizer tells."""

    active: list[Object] = field(default_factory=list)
    terminating: list[Object] = field(default_factory=list)
    succeeded: list[Object] = field(default_factory=list)
    failed: list[Object] = field(default_factory=list)

    @property
    def ready(self) -> int:
        return sum(is_ready(pod) for pod in self.active)


def sorted_out(job: Object, pods: list[Object]) -> Pods:
    """A pod that is told to end has failed as far as most Jobs go: they don't wait to see how it does."""
    alive = [pod for pod in pods if pod["status"]["phase"] not in TERMINAL]
    tracked = [pod for pod in pods if is_tracked(pod)]
    waits = job["spec"]["podReplacementPolicy"] == "Failed"
    return Pods(
        active=[pod for pod in alive if not is_terminating(pod)],
        terminating=[pod for pod in alive if is_terminating(pod)],
        succeeded=[pod for pod in tracked if pod["status"]["phase"] == "Succeeded"],
        failed=[pod for pod in tracked if _has_failed(pod, waits=waits)],
    )


def _has_failed(pod: Object, *, waits: bool) -> bool:
    phase = pod["status"]["phase"]
    return phase == "Failed" or (not waits and phase != "Succeeded" and is_terminating(pod))


class JobPods:
    """What is done to pods for a Job, with the events that tell of it."""

    def __init__(self, registry: Registry, events: Events) -> None:
        self._registry, self._events = registry, events

    def of(self, key: Key, job: Object) -> list[Object]:
        """Its own; a pod without a controller that fits its selector becomes its own."""
        found = []
        for pod in self._registry.store.all(POD, key.namespace):
            owner = owner_of(pod)
            if owner.get("uid") == job["metadata"]["uid"]:
                found.append(pod)
            elif not owner and self._may_adopt(job, pod):
                found.append(self._adopt(job, pod))
        return found

    def left_by(self, key: Key) -> list[Object]:
        """Those that still wait to be counted by a Job of that name, which is gone."""
        pods = self._registry.store.all(POD, key.namespace)
        return [pod for pod in pods if is_tracked(pod) and owner_of(pod).get("name") == key.name]

    def create(self, job: Object, index: int | None = None, failures: int | None = None) -> Object:
        """`index` of an indexed Job; `failures` of that index, where the Job limits them.

        Raises `RefusedError` where the server does not allow it.
        """
        template, name = job["spec"]["template"], job["metadata"]["name"]
        kept = ("labels", "annotations")
        metadata = {part: dict(template["metadata"][part]) for part in kept if part in template["metadata"]}
        spec, prefix = template["spec"], f"{name}-"
        if index is not None:
            prefix, spec = f"{name}-{index}-", _indexed(spec, name, index)
            metadata.setdefault("labels", {})[INDEX] = str(index)
            metadata.setdefault("annotations", {})[INDEX] = str(index)
        if failures is not None:
            metadata["annotations"][FAILURES] = str(failures)
        metadata |= {"generateName": prefix, "finalizers": [TRACKING], "ownerReferences": [_owner(job)]}
        try:
            made = self._registry.create(
                POD, job["metadata"]["namespace"], {"metadata": metadata, "spec": spec}
            )
        except RefusedError as refused:
            self._events.of_jobs(job, "FailedCreate", f"Error creating: {refused}", "Warning")
            raise
        self._events.of_jobs(job, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
        return made

    def delete(self, job: Object, pod: Object) -> None:
        self._registry.delete(key_of(pod), Deletion())
        self._events.of_jobs(job, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")

    def withdraw(self, job: Object, pod: Object) -> None:
        """A pod that is not wanted any more, and not counted either."""
        self.let_go(pod)
        self.delete(job, pod)

    def let_go(self, pod: Object) -> None:
        """Without the finalizer, a pod that is to be deleted can go."""
        found = self._registry.store.get(key_of(pod))
        if found is not None and is_tracked(found):
            finalizers = [one for one in found["metadata"]["finalizers"] if one != TRACKING]
            metadata = {**found["metadata"], "finalizers": finalizers}
            self._registry.update(key_of(pod), {**found, "metadata": metadata})

    def _may_adopt(self, job: Object, pod: Object) -> bool:
        if is_terminating(pod) or "deletionTimestamp" in job["metadata"]:
            return False
        return matches_labels(job["spec"]["selector"], pod["metadata"].get("labels") or {})

    def _adopt(self, job: Object, pod: Object) -> Object:
        metadata = pod["metadata"]
        owners = [*metadata.get("ownerReferences", []), _owner(job)]
        finalizers = [*metadata.get("finalizers", []), TRACKING]
        changed = {**metadata, "ownerReferences": owners, "finalizers": finalizers}
        return self._registry.update(key_of(pod), {**pod, "metadata": changed})


def _owner(job: Object) -> Object:
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    reference = {"apiVersion": JOB.api_version, "kind": JOB.name, "name": name, "uid": uid}
    return {**reference, "controller": True, "blockOwnerDeletion": True}


def _indexed(spec: Object, name: str, index: int) -> Object:
    """Its containers know their index, and its host name ends in it."""
    spec = copy.deepcopy(spec)
    field = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": field}}
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        container["env"] = [*container.get("env", []), variable]
    return {**spec, "hostname": f"{name}-{index}"}


def to_remove(active: list[Object], count: int) -> list[Object]:
    """The cheapest to lose: without a node, then pending, then not ready, then the newest."""

    def age(pod: Object) -> tuple[bool, bool, bool]:
        return "nodeName" in pod["spec"], pod["status"]["phase"] == "Running", is_ready(pod)

    newest = sorted(active, key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)
    return sorted(newest, key=age)[: max(count, 0)]


def owner_of(pod: Object) -> Object:
    """Its controller, which is a Job if it is tracked; empty where it has none."""
    references = pod["metadata"].get("ownerReferences") or []
    return next((one for one in references if one.get("controller")), {})


def index_of(pod: Object) -> int:
    return int(pod["metadata"]["annotations"][INDEX])


def failures_of(pod: Object) -> int:
    """Of its index before it."""
    return int(pod["metadata"]["annotations"][FAILURES])


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_tracked(pod: Object) -> bool:
    return TRACKING in pod["metadata"].get("finalizers", [])


def is_terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def key_of(pod: Object) -> Key:
    return Key(POD, pod["metadata"]["namespace"], pod["metadata"]["name"])
