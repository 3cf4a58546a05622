"""Watches: what of the store's changes one of them is told, with bookmarks, until its time is over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.kubernetes import errors
from tests.kubernetes.clock import Clock
from tests.kubernetes.kinds import JOB, POD, Kind, Object
from tests.kubernetes.selectors import Matches
from tests.kubernetes.store import Change, Store

MINUTE = 59.0  # between bookmarks
LAST_BOOKMARKS = (2.5, 1.3)  # seconds before the end


@dataclass(eq=False)
class Watch:
    """`since` None: everything that is there comes first."""

    store: Store
    clock: Clock
    kind: Kind
    namespace: str
    matches: Matches
    since: int | None
    timeout: float  # seconds
    bookmarks: bool

    def __post_init__(self) -> None:
        self.opened = self.clock.now()
        self.ended = False

    def end(self) -> None:
        """Now, as when a server goes away."""
        with self.store.changed:
            self.ended = True
            self.store.changed.notify_all()

    def events(self) -> Iterator[Object]:
        with self.store.changed:
            told, seen = self._first()
        yield from told
        if told and told[0]["type"] == "ERROR":
            return
        due = self._bookmark_times()
        while not self.ended:
            with self.store.changed:
                changes = self.store.since(seen)
                if not changes and not self.ended:
                    self.clock.wait(due[0])
                    changes = self.store.since(seen)
                seen = max([seen, *(change.revision for change in changes)])
                current = self.store.revision
            yield from filter(None, map(self._told, changes))
            while due and due[0] <= self.clock.now():
                if len(due) == 1:
                    return
                due.pop(0)
                if self.bookmarks:
                    yield {"type": "BOOKMARK", "object": _bookmark(self.kind, max(seen, current))}

    def _first(self) -> tuple[list[Object], int]:
        """What is told at once, and the revision that it goes on from."""
        if self.since is None:
            there = self.store.all(self.kind, self.namespace)
            told = [{"type": "ADDED", "object": one} for one in there if self.matches(one)]
            return told, self.store.revision
        if self.since < self.store.watchable:
            message = f"too old resource version: {self.since} ({self.store.watchable})"
            return [{"type": "ERROR", "object": errors.expired(message).body}], self.since
        return [], self.since

    def _bookmark_times(self) -> list[float]:
        """When bookmarks are due; the last of these times is the watch's end."""
        end = self.opened + self.timeout
        minutes = range(1, int(self.timeout / MINUTE) + 1)
        regular = [self.opened + MINUTE * number for number in minutes]
        last = [end - before for before in LAST_BOOKMARKS if before < self.timeout]
        return [*sorted({*regular, *last}), end]

    def _told(self, change: Change) -> Object | None:
        key = change.key
        if key.kind is not self.kind or self.namespace not in ("", key.namespace):
            return None
        before = change.previous is not None and self.matches(change.previous)
        now = change.type != "DELETED" and self.matches(change.object)
        if now:
            return {"type": "MODIFIED" if before else "ADDED", "object": change.object}
        if before and change.type == "DELETED":
            return {"type": "DELETED", "object": change.object}
        if before and change.previous is not None:  # as it was, but with the revision that took it away
            version = {"resourceVersion": str(change.revision)}
            metadata = {**change.previous["metadata"], **version}
            return {"type": "DELETED", "object": {**change.previous, "metadata": metadata}}
        return None


def _bookmark(kind: Kind, revision: int) -> Object:
    found: Object = {"kind": kind.name, "apiVersion": kind.api_version}
    found["metadata"] = {"resourceVersion": str(revision), "creationTimestamp": None}
    if kind is POD:
        found |= {"spec": {"containers": None}, "status": {}}
    if kind is JOB:
        template = {"metadata": {"creationTimestamp": None}, "spec": {"containers": None}}
        found |= {"spec": {"template": template}, "status": {}}
    return found
