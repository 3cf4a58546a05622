"""The garbage collector: what becomes of objects whose owners are deleted."""

from __future__ import annotations

from tests.kubernetes.controllers import NEVER
from tests.kubernetes.kinds import BY_NAME, SERVICE, Key, Object
from tests.kubernetes.registry import Deletion, Registry

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Collector:
    def __init__(self, registry: Registry) -> None:
        self._registry, self._seen = registry, 0

    def step(self, now: float) -> float:
        """Looks at everything whenever anything was changed that could matter."""
        store = self._registry.store
        changes, self._seen = store.since(self._seen), store.revision
        if any(_matters(change.object["metadata"]) or change.type == "DELETED" for change in changes):
            objects = store.everything()
            for key, found in objects:
                finalizers = found["metadata"].get("finalizers") or []
                if "deletionTimestamp" in found["metadata"] and ORPHAN in finalizers:
                    self._orphan(key, found, objects)
            self._collect()
        return NEVER

    def _orphan(self, owner: Key, found: Object, objects: list[tuple[Key, Object]]) -> None:
        """Its dependents forget it, then it goes."""
        uid = found["metadata"]["uid"]
        for key, dependent in objects:
            references = _references(dependent)
            kept = [one for one in references if one["uid"] != uid]
            if len(kept) < len(references):
                self._change(key, dependent, "ownerReferences", kept)
        self._release(owner, found, ORPHAN)

    def _collect(self) -> None:
        objects = self._registry.store.everything()
        for key, found in objects:
            references = _references(found)
            if references and not any(self._is_alive(key, one) for one in references):
                self._delete(key, found, self._is_awaited(key, references))
        for key, found in self._registry.store.everything():
            metadata = found["metadata"]
            if FOREGROUND not in (metadata.get("finalizers") or []) or "deletionTimestamp" not in metadata:
                continue
            uid = metadata["uid"]
            everything = self._registry.store.everything()
            if not any(one["uid"] == uid for _, other in everything for one in _references(other)):
                self._release(key, found, FOREGROUND)

    def _is_alive(self, dependent: Key, reference: Object) -> bool:
        """An owner that is to go last, after its dependents, is none of theirs any more."""
        owner = self._owner(dependent, reference)
        return owner is not None and not (
            "deletionTimestamp" in owner["metadata"]
            and FOREGROUND in (owner["metadata"].get("finalizers") or [])
        )

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

    def _change(self, key: Key, found: Object, name: str, value: list[Object] | list[str]) -> Object:
        metadata = {**found["metadata"], name: value}
        if not value:
            del metadata[name]
        changed = {**found, "metadata": metadata}
        return self._registry.store.put(key, changed)

    def _release(self, key: Key, found: Object, finalizer: str) -> None:
        left = [one for one in found["metadata"]["finalizers"] if one != finalizer]
        if left:
            self._change(key, found, "finalizers", left)
        else:
            self._registry.store.remove(key, found)


def _references(found: Object) -> list[Object]:
    return found["metadata"].get("ownerReferences") or []


def _matters(metadata: Object) -> bool:
    return "deletionTimestamp" in metadata or bool(metadata.get("ownerReferences"))
