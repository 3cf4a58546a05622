"""All objects, and every change of one since the store was compacted last."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass

from tests.kubernetes.kinds import Key, Kind, Object

FIRST = 1000  # a server that is new has had its own things to write


@dataclass(frozen=True, slots=True)
class Change:
    revision: int
    type: str  # ADDED, MODIFIED or DELETED
    key: Key
    object: Object
    previous: Object | None


class Store:
    """Objects are never changed in place. Who reads or writes holds `changed`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.revision = FIRST
        self.compacted = 0  # what was before cannot be listed
        self.watchable = FIRST  # what was before cannot be watched
        self.changes: list[Change] = []
        self._objects: dict[Kind, dict[Key, Object]] = defaultdict(dict)

    def get(self, key: Key) -> Object | None:
        return self._objects[key.kind].get(key)

    def put(self, key: Key, found: Object) -> Object:
        """As it is stored. What is as it was keeps its revision, and nobody hears of it."""
        previous = self.get(key)
        if previous is not None and _is_same(previous, found):
            return previous
        return self._write("MODIFIED" if previous else "ADDED", key, found)

    def remove(self, key: Key, last: Object) -> Object:
        removed = self._write("DELETED", key, last)
        del self._objects[key.kind][key]
        return removed

    def all(self, kind: Kind, namespace: str = "") -> list[Object]:
        return _sorted(self._objects[kind], namespace)

    def all_at(self, revision: int, kind: Kind, namespace: str = "") -> list[Object]:
        """As they were then."""
        objects: dict[Key, Object] = {}
        for change in self.changes:
            if change.revision > revision:
                break
            if change.key.kind is not kind:
                continue
            objects[change.key] = change.object
            if change.type == "DELETED":
                del objects[change.key]
        return _sorted(objects, namespace)

    def since(self, revision: int) -> list[Change]:
        """Changes after that revision, oldest first."""
        first = len(self.changes)
        while first and self.changes[first - 1].revision > revision:
            first -= 1
        return self.changes[first:]

    def compact(self, revision: int) -> None:
        """Lists and watches of anything older are refused from now on."""
        with self.changed:
            self.compacted = max(self.compacted, revision)
            self.watchable = max(self.watchable, revision)

    def _write(self, type_: str, key: Key, found: Object) -> Object:
        self.revision += 1
        metadata = {**found["metadata"], "resourceVersion": str(self.revision)}
        written = {**found, "metadata": metadata}
        self.changes.append(Change(self.revision, type_, key, written, self.get(key)))
        self._objects[key.kind][key] = written
        self.changed.notify_all()
        return written


def _is_same(one: Object, other: Object) -> bool:
    version = {"resourceVersion": None}
    return {**one, "metadata": {**one["metadata"], **version}} == {
        **other,
        "metadata": {**other["metadata"], **version},
    }


def _sorted(objects: dict[Key, Object], namespace: str) -> list[Object]:
    found = [key for key in objects if namespace in ("", key.namespace)]
    return [objects[key] for key in sorted(found, key=lambda key: (key.namespace, key.name))]
