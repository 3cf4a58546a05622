"""Deletes Jobs that have ended as long ago as they say of themselves."""

from __future__ import annotations

from tests.kubernetes.clock import moment
from tests.kubernetes.controllers import NEVER
from tests.kubernetes.kinds import JOB, Key, Object
from tests.kubernetes.registry import Deletion, Registry


class Expiry:
    def __init__(self, registry: Registry) -> None:
        self._registry, self._seen = registry, 0
        self._due: dict[Key, float] = {}

    def step(self, now: float) -> float:
        store = self._registry.store
        for change in store.since(self._seen):
            if change.key.kind is JOB:
                self._due[change.key] = _expires(change.object)
        self._seen = store.revision
        for key in [key for key, due in self._due.items() if due <= now]:
            job = store.get(key)
            if job is not None and _expires(job) <= now:
                self._registry.delete(key, Deletion(propagation="Foreground", uid=job["metadata"]["uid"]))
        self._due = {key: due for key, due in self._due.items() if now < due < NEVER}
        return min(self._due.values(), default=NEVER)


def _expires(job: Object) -> float:
    if "ttlSecondsAfterFinished" not in job["spec"] or "deletionTimestamp" in job["metadata"]:
        return NEVER
    ends = [one for one in job["status"].get("conditions", []) if one["type"] in ("Complete", "Failed")]
    return moment(ends[0]["lastTransitionTime"]) + job["spec"]["ttlSecondsAfterFinished"] if ends else NEVER
