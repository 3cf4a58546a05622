"""The garbage collector: what becomes of objects whose owners are deleted."""

from __future__ import annotations

from collections import defaultdict

from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.kinds import BY_NAME, SERVICE, Key, Object
from tests.kubernetes.registry import Deletion, Registry
from tests.kubernetes.store import Change

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
SLICES = 4  # times as long: a Service's EndpointSlices go before it


class Collector:
    def __init__(self, registry: Registry, pace: Pace) -> None:
        self._registry, self._pace, self._seen = registry, pace, 0
        self._owners: dict[Key, set[str]] = {}  # of each object, the uids
        self._dependents: dict[str, set[Key]] = defaultdict(set)  # by the uid of the owner
        self._checks: dict[Key, float] = {}  # when owners are looked for
        self._held: set[Key] = set()  # until their dependents are settled
        self._due: dict[Key, float] = {}  # when finalizers go

    def step(self, now: float) -> float:
        store = self._registry.store
        for change in store.since(self._seen):
            self._hear(change, now)
        self._seen = store.revision
        for key in [key for key, due in self._checks.items() if due <= now]:
            del self._checks[key]
            self._check(key)
        for key in list(self._held):
            self._settle(key, now)
        for key in [key for key, due in self._due.items() if due <= now]:
            del self._due[key]
            if (left := store.get(key)) is not None:
                self._release(key, left)
        return min((*self._due.values(), *self._checks.values()), default=NEVER)

    def _hear(self, change: Change, now: float) -> None:
        key, found, uid = change.key, change.object, change.object["metadata"]["uid"]
        is_gone = change.type == "DELETED"
        owners = set() if is_gone else {one["uid"] for one in _references(found)}
        before = self._owners.pop(key, set())
        for owner in before - owners:
            self._dependents[owner].discard(key)
        for owner in owners - before:
            self._dependents[owner].add(key)
        if owners:
            self._owners[key] = owners
        if owners - before:
            self._checks[key] = now + (self._pace.look if change.type == "ADDED" else 0)
        is_held = not is_gone and (_is_held(found, ORPHAN) or _is_held(found, FOREGROUND))
        if is_gone or (is_held and key not in self._held):
            self._checks.update(dict.fromkeys(self._dependents[uid], now))
        self._held = self._held | {key} if is_held else self._held - {key}

    def _check(self, key: Key) -> None:
        found = self._registry.store.get(key)
        references = _references(found) if found is not None else []
        if found is None or not references or any(self._is_alive(key, one) for one in references):
            return
        if "deletionTimestamp" not in found["metadata"]:
            is_awaited = any(self._owner(key, one) is not None for one in references)
            # A Service has EndpointSlices of its own, which an owner that waits for it waits for too.
            foreground = is_awaited and key.kind is SERVICE
            self._registry.delete(key, Deletion(propagation="Foreground" if foreground else "Background"))

    def _settle(self, key: Key, now: float) -> None:
        """Its dependents forget it; when none holds it any more, it can go."""
        found = self._registry.store.get(key)
        if found is None:
            return
        dependents = self._dependents[found["metadata"]["uid"]]
        if _is_held(found, ORPHAN):
            for dependent in list(dependents):
                self._orphan(dependent, found["metadata"]["uid"])
        if not dependents:
            self._due.setdefault(key, now + self._pace.collect * (SLICES if key.kind is SERVICE else 1))

    def _orphan(self, dependent: Key, uid: str) -> None:
        found = self._registry.store.get(dependent)
        if found is not None:
            kept = [one for one in _references(found) if one["uid"] != uid]
            self._change(dependent, found, "ownerReferences", kept)

    def _is_alive(self, dependent: Key, reference: Object) -> bool:
        """An owner that is to go last, after its dependents, is none of theirs any more."""
        owner = self._owner(dependent, reference)
        return owner is not None and not _is_held(owner, FOREGROUND)

    def _owner(self, dependent: Key, reference: Object) -> Object | None:
        kind = BY_NAME.get((reference["apiVersion"], reference["kind"]))
        if kind is None:
            return None
        namespace = dependent.namespace if kind.namespaced else ""
        found = self._registry.store.get(Key(kind, namespace, reference["name"]))
        return found if found is not None and found["metadata"]["uid"] == reference["uid"] else None

    def _change(self, key: Key, found: Object, name: str, value: list[Object] | list[str]) -> None:
        metadata = {**found["metadata"], name: value}
        if not value:
            del metadata[name]
        self._registry.store.put(key, {**found, "metadata": metadata})

    def _release(self, key: Key, found: Object) -> None:
        left = [one for one in found["metadata"]["finalizers"] if one not in (FOREGROUND, ORPHAN)]
        if left:
            self._change(key, found, "finalizers", left)
        else:
            self._registry.store.remove(key, found)


def _is_held(found: Object, finalizer: str) -> bool:
    metadata = found["metadata"]
    return "deletionTimestamp" in metadata and finalizer in (metadata.get("finalizers") or [])


def _references(found: Object) -> list[Object]:
    return found["metadata"].get("ownerReferences") or []
