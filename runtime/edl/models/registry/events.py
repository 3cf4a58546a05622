"""Model registry on append-only storage: it stores events of models and derives their state from these.

Versions are claimed. The current version of a name is the one with the highest pointer; pointers increase, and of two
equal ones the pointer of the higher version counts. A tag belongs to the version of its event with the highest pointer,
unless that removes it. A renamed model keeps its events where they are (`edl.models.registry.renaming`).
"""

from __future__ import annotations

import itertools
import re
import secrets
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

import msgspec

from edl.errors import SourceError
from edl.models.registry.base import Registry, Versions, now
from edl.models.registry.records import (
    ModelRecord,
    ModelVersion,
    RegistryEvent,
    State,
    What,
    split_reference,
)
from edl.models.registry.renaming import StoredEvent, is_under_way, resolve_events

Events = list[RegistryEvent]
_VERSION = attrgetter("name", "version")


class EventRegistry(Registry):
    """`Registry` derived from events; subclasses define their storage."""

    def drop(self, reference: str) -> int:
        name, selector = split_reference(reference)
        versions = [version for version in self._all_versions(name) if version.is_selected(selector)]
        visible = [version for version in versions if version.state in ("ready", "failed")]
        if not visible:
            raise self._unknown(reference)
        if selector is None and (facts := self._facts(name)):  # another model of the name has none of them
            self._describe(name, dict.fromkeys(facts, ""))
        for version in versions if selector is None else visible:
            self._bury(version)
        return len(visible)

    # Steps specific to a storage ---------------------------------------------------------------------------

    @abstractmethod
    def _claim(self, name: str, above: int = 0) -> int:
        """Claim a version of the name that no other writer has, had or will have; higher numbers are unused too.

        It is higher than `above`, too.
        """

    @abstractmethod
    def _append(self, event: RegistryEvent) -> None: ...

    @abstractmethod
    def _read_events(self, name: str) -> Events:
        """Return the events that are stored under a name."""

    @abstractmethod
    def _read_all_events(self) -> Events: ...

    @abstractmethod
    def _remove_archive(self, name: str, version: int, key: str) -> None:
        """Remove the archive if it exists."""

    # Steps -----------------------------------------------------------------------------------------------

    def _add(self, name: str, state: State, record: ModelRecord, *, key: str = "", reason: str = "") -> int:
        present = max((stored.event.version for stored in self._stored_events(name)), default=0)
        version = self._claim(name, present)
        event: What = "failed" if state == "failed" else "saving"
        self._append(
            RegistryEvent(name, version, event, created=now(), record=record, reason=reason, archive=key)
        )
        return version

    def _publish(self, name: str, version: int, size: int, digest: str, *, current: bool) -> None:
        happened = self._events_of(name)
        if any(event.event == "dropped" and event.version == version for event in happened):
            raise SourceError(f"model {name} was dropped while it was being saved")
        pointer = next_pointer(happened) if current else 0
        self._append(RegistryEvent(name, version, "ready", pointer, archive_bytes=size, sha256=digest))

    def _activate(self, name: str, version: int) -> None:
        happened = self._events_of(name)
        if not any(other.version == version and other.state == "ready" for other in fold_events(happened)):
            raise self._unknown(f"{name}@{version}")
        home = self._home(name, version)
        self._append(RegistryEvent(home, version, "current", next_pointer(happened)))

    def _tag(self, name: str, version: int, tag: str) -> None:
        happened = self._events_of(name)
        if not any(other.version == version and other.state == "ready" for other in fold_events(happened)):
            raise self._unknown(f"{name}@{version}")
        home = self._home(name, version)
        self._append(RegistryEvent(home, version, "tagged", next_pointer(happened), reason=tag))

    def _untag(self, version: ModelVersion, tag: str) -> None:
        pointer = next_pointer(self._events_of(version.name))
        home = self._home(version.name, version.version)
        self._append(RegistryEvent(home, version.version, "untagged", pointer, reason=tag))

    def _describe(self, name: str, facts: Mapping[str, str]) -> None:
        happened = self._events_of(name)
        kept = {key: text for key, text in {**_facts(happened), **facts}.items() if text}
        version = max(event.version for event in happened)
        home = self._home(name, version)
        reason = msgspec.json.encode(kept).decode()
        self._append(RegistryEvent(home, version, "described", next_pointer(happened), reason=reason))

    def _facts(self, name: str) -> dict[str, str]:
        return _facts(self._events_of(name)) if self._versions(name) else {}

    def _discard(self, name: str, version: int, key: str) -> None:
        home = self._home(name, version)
        if key:
            self._remove_archive(home, version, key)
        self._append(RegistryEvent(home, version, "dropped"))

    def _bury(self, dropped: ModelVersion) -> None:
        """Discard a version like `_discard`. If it was current, another one becomes current."""
        self._discard(dropped.name, dropped.version, dropped.archive)
        left = [version.version for version in self._versions(dropped.name) if version.state == "ready"]
        if dropped.current and left:
            pointer = next_pointer(self._events_of(dropped.name))
            home = self._home(dropped.name, max(left))
            self._append(RegistryEvent(home, max(left), "current", pointer))

    def _rename(self, name: str, new_name: str) -> None:
        key = secrets.token_hex(16)
        if is_under_way(new_name, self._read_events):
            raise self._name_taken_error(new_name)
        version = self._claim(new_name)
        self._append(RegistryEvent(new_name, version, "received", created=now(), reason=name, archive=key))
        version = self._claim(name)
        if not self._versions(name):
            raise self._unknown(name)
        self._append(RegistryEvent(name, version, "renamed", created=now(), reason=new_name, archive=key))
        if not self._versions(new_name):  # another writer was faster
            raise self._unknown(name)

    def _stored_events(self, name: str) -> list[StoredEvent]:
        return resolve_events(name, self._read_events)

    def _events_of(self, name: str) -> Events:
        """Return the events of a name, also those that are stored under an earlier one."""
        return _with_name(self._stored_events(name), name)

    def _home(self, name: str, version: int) -> str:
        """Return the name under which the events of a version are stored."""
        return next(
            (stored.home for stored in self._stored_events(name) if stored.event.version == version), name
        )

    def _list_versions(self, like: str | None) -> Versions:
        by_name: dict[str, Events] = {}
        for event in self._read_all_events():
            by_name.setdefault(event.name, []).append(event)
        pattern = like_pattern(like if like is not None else "%")

        def read(name: str) -> Events:
            return by_name.get(name, [])

        return [
            version
            for name in sorted(by_name)
            if pattern.fullmatch(name)
            for version in fold_events(_with_name(resolve_events(name, read), name))
        ]

    def _all_versions(self, name: str) -> Versions:
        return fold_events(self._events_of(name))


def like_pattern(like: str) -> re.Pattern[str]:
    """Translate a SQL LIKE pattern."""
    parts = {"%": ".*", "_": "."}
    return re.compile("".join(parts.get(letter, re.escape(letter)) for letter in like), re.DOTALL)


def _with_name(stored: Iterable[StoredEvent], name: str) -> Events:
    return [event if event.name == name else msgspec.structs.replace(event, name=name) for _, event in stored]


def next_pointer(happened: Events) -> int:
    return 1 + max((event.pointer for event in happened), default=0)


def fold_events(events: Events) -> Versions:
    """Derive the state of each version from the events, by name and number."""
    by_version = itertools.groupby(sorted(events, key=_VERSION), _VERSION)
    found_of = {of: _last_of_each(group) for of, group in by_version}
    begun = {of: by_kind for of, by_kind in found_of.items() if "saving" in by_kind or "failed" in by_kind}
    current, tags = _current_versions(begun), _tags(events)
    return [
        _version(by_kind, current.get(of[0]) == of[1], sorted(tags.get(of, ())))
        for of, by_kind in begun.items()
    ]


Found = dict[What, RegistryEvent]


def _last_of_each(events: Iterable[RegistryEvent]) -> Found:
    last: Found = {}
    for event in events:
        earlier = last.get(event.event)
        if earlier is None or earlier.pointer < event.pointer:
            last[event.event] = event
    return last


def _current_versions(begun: dict[tuple[str, int], Found]) -> dict[str, int]:
    """Return the current version of each name."""
    pointers: dict[str, tuple[int, int]] = {}
    for (name, version), by_kind in begun.items():
        if "ready" in by_kind and "dropped" not in by_kind:
            pointer = max(by_kind[event].pointer for event in ("ready", "current") if event in by_kind)
            pointers[name] = max(pointers.get(name, (0, 0)), (pointer, version))
    return {name: version for name, (_, version) in pointers.items()}


def _tags(events: Events) -> dict[tuple[str, int], list[str]]:
    """Return the tags of each version."""
    last: dict[tuple[str, str], RegistryEvent] = {}
    for event in events:
        if event.event in ("tagged", "untagged"):
            earlier = last.get((event.name, event.reason))
            if earlier is None or (earlier.pointer, earlier.version) < (event.pointer, event.version):
                last[event.name, event.reason] = event
    tags: dict[tuple[str, int], list[str]] = {}
    for event in last.values():
        if event.event == "tagged":
            tags.setdefault(_VERSION(event), []).append(event.reason)
    return tags


def _facts(events: Events) -> dict[str, str]:
    """Return the facts of the last event that describes a model; each has all of them."""
    described = [event for event in events if event.event == "described"]
    last = max(described, key=lambda event: (event.pointer, event.version), default=None)
    return {} if last is None else msgspec.json.decode(last.reason, type=dict[str, str])


# States by precedence: the first of these with an event.
_STATES: tuple[State, ...] = ("dropped", "ready", "failed", "saving")


def _version(by_kind: Found, current: bool, tags: Sequence[str]) -> ModelVersion:
    begun = by_kind.get("saving") or by_kind["failed"]
    ready = by_kind.get("ready", begun)
    assert begun.record is not None  # noqa: S101 - `_add` has set it
    return ModelVersion(
        name=begun.name,
        version=begun.version,
        state=next(state for state in _STATES if state in by_kind),
        current=current,
        created=begun.created,
        record=begun.record,
        reason=begun.reason,
        archive=begun.archive,
        archive_bytes=ready.archive_bytes,
        sha256=ready.sha256,
        tags=tuple(tags),
    )
