"""The namespace controller: a deleted namespace goes when all in it has gone, and takes nothing new until then."""

from __future__ import annotations

from tests.kubernetes.controllers import NEVER
from tests.kubernetes.kinds import KINDS, NAMESPACE, Key
from tests.kubernetes.registry import Deletion, Registry


class Namespaces:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def step(self, now: float) -> float:
        for namespace in self._registry.store.all(NAMESPACE):
            if "deletionTimestamp" in namespace["metadata"]:
                self._empty(namespace["metadata"]["name"])
        return NEVER

    def _empty(self, name: str) -> None:
        store, kept = self._registry.store, False
        for kind in KINDS:
            for found in store.all(kind, name) if kind.namespaced else ():
                kept = True
                if "deletionTimestamp" not in found["metadata"]:
                    key = Key(kind, name, found["metadata"]["name"])
                    self._registry.delete(key, Deletion(propagation="Background"))
        key = Key(NAMESPACE, "", name)
        if not kept and (last := store.get(key)) is not None:
            store.remove(key, last)
