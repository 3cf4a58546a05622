"""The garbage collector: what becomes of objects whose owners are deleted."""

from __future__ import annotations

from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.kinds import BY_NAME, SERVICE, Key, Object
from tests.kubernetes.registry import Deletion, Registry

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
SLICES = 4  # times as long: a Service's EndpointSlices go before it


class Collector:
    def __init__(self, registry: Registry, pace: Pace) -> None:
        self._registry, self._pace, self._seen = registry, pace, 0
        self._due: dict[Key, float] = {}  # when finalizers go
        self._new: dict[Key, float] = {}  # when owners of what was just made are looked for

    def step(self, now: float) -> float:
        """Looks at everything whenever anything was changed that could matter."""
        store = self._registry.store
        changes, self._seen = store.since(self._seen), store.revision
        for change in changes:
            if change.type == "ADDED" and _references(change.object):
                self._new[change.key] = now + self._pace.look
        looked_for = [key for key, due in self._new.items() if due <= now]
        for key in looked_for:
            del self._new[key]
        matters = any(_matters(change.object["metadata"]) or change.type == "DELETED" for change in changes)
        if matters or looked_for:
            objects = store.everything()
            for _, found in objects:
                if _is_held(found, ORPHAN):
                    self._orphan(found, objects)
            self._collect()
            for key in self._released():
                self._due.setdefault(key, now + self._pace.collect * (SLICES if key.kind is SERVICE else 1))
        for key in [key for key, due in self._due.items() if due <= now]:
            del self._due[key]
            if (left := store.get(key)) is not None:
                self._release(key, left)
        return min((*self._due.values(), *self._new.values()), default=NEVER)

    def _orphan(self, found: Object, objects: list[tuple[Key, Object]]) -> None:
        """Its dependents forget it."""
        uid = found["metadata"]["uid"]
        for key, dependent in objects:
            references = _references(dependent)
            kept = [one for one in references if one["uid"] != uid]
            if len(kept) < len(references):
                self._change(key, dependent, "ownerReferences", kept)

    def _collect(self) -> None:
        objects = self._registry.store.everything()
        for key, found in objects:
            references = _references(found)
            if key in self._new or not references:
                continue
            if not any(self._is_alive(key, one) for one in references):
                self._delete(key, found, self._is_awaited(key, references))

    def _released(self) -> list[Key]:
        """Whom nothing that is left of their dependents holds any more."""
        objects = self._registry.store.everything()
        owners = {one["uid"] for _, found in objects for one in _references(found)}
        return [
            key
            for key, found in objects
            if (_is_held(found, ORPHAN) or _is_held(found, FOREGROUND))
            and found["metadata"]["uid"] not in owners
        ]

    def _is_alive(self, dependent: Key, reference: Object) -> bool:
        """An owner that is to go last, after its dependents, is none of theirs any more."""
        owner = self._owner(dependent, reference)
        return owner is not None and not _is_held(owner, FOREGROUND)

    def _is_awaited(self, dependent: Key, references: list[Object]) -> bool:
        return any(self._owner(dependent, one) is not None for one in references)

    def _owner(self, dependent: Key, reference: Object) -> Object | None:
        kind = BY_NAME.get((reference["apiVersion"], reference["kind"]))
        if kind is None:
            return None
        namespace = dependent.namespace if kind.namespaced else ""
        found = self._registry.store.get(Key(kind, namespace, reference["name"]))
        return found if found is not None and found["metadata"]["uid"] == reference["uid"] else None

    def _delete(self, key: Key, found: Object, is_awaited: bool) -> None:
        if "deletionTimestamp" not in found["metadata"]:
            # A Service has EndpointSlices of its own, which an owner that waits for it waits for too.
            foreground = is_awaited and key.kind is SERVICE
            self._registry.delete(key, Deletion(propagation="Foreground" if foreground else "Background"))

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


def _matters(metadata: Object) -> bool:
    return "deletionTimestamp" in metadata or bool(metadata.get("ownerReferences"))
