"""Model registry on append-only storage: it stores events of models and derives their state from these.

Versions are claimed. The current version of a name is the one with the highest pointer; pointers increase, and of two
equal ones the pointer of the higher version counts. A tag belongs to the version of its event with the highest pointer,
unless that removes it.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Literal

import msgspec

from edl.errors import SourceError
from edl.models.registry.base import Registry, Versions, now
from edl.models.registry.records import ModelRecord, ModelVersion, State, split_reference

What = Literal["saving", "failed", "ready", "current", "dropped", "tagged", "untagged"]


class RegistryEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Event of a version. The last fields are fields of `ModelVersion`, as far as they are known at that time."""

    name: str
    version: int
    event: What
    pointer: int = 0  # of events ready, current, tagged and untagged
    created: str = ""
    record: ModelRecord | None = None  # of events saving and failed
    reason: str = ""  # of a failure; of events tagged and untagged the tag
    archive: str = ""
    archive_bytes: int = 0
    sha256: str = ""


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
        for version in versions if selector is None else visible:
            self._bury(version)
        return len(visible)

    # Steps specific to a storage ---------------------------------------------------------------------------

    @abstractmethod
    def _claim(self, name: str) -> int:
        """Claim a version of the name that no other writer has, had or will have; higher numbers are unused too."""

    @abstractmethod
    def _append(self, event: RegistryEvent) -> None: ...

    @abstractmethod
    def _read_events(self, name: str) -> Events: ...

    @abstractmethod
    def _remove_archive(self, name: str, version: int, key: str) -> None:
        """Remove the archive if it exists."""

    # Steps -----------------------------------------------------------------------------------------------

    def _add(self, name: str, state: State, record: ModelRecord, *, key: str = "", reason: str = "") -> int:
        version = self._claim(name)
        event: What = "failed" if state == "failed" else "saving"
        self._append(
            RegistryEvent(name, version, event, created=now(), record=record, reason=reason, archive=key)
        )
        return version

    def _publish(self, name: str, version: int, size: int, digest: str, *, current: bool) -> None:
        happened = self._read_events(name)
        if any(event.event == "dropped" and event.version == version for event in happened):
            raise SourceError(f"model {name} was dropped while it was being saved")
        pointer = next_pointer(happened) if current else 0
        self._append(RegistryEvent(name, version, "ready", pointer, archive_bytes=size, sha256=digest))

    def _activate(self, name: str, version: int) -> None:
        happened = self._read_events(name)
        if not any(other.version == version and other.state == "ready" for other in fold_events(happened)):
            raise self._unknown(f"{name}@{version}")
        self._append(RegistryEvent(name, version, "current", next_pointer(happened)))

    def _tag(self, name: str, version: int, tag: str) -> None:
        happened = self._read_events(name)
        if not any(other.version == version and other.state == "ready" for other in fold_events(happened)):
            raise self._unknown(f"{name}@{version}")
        self._append(RegistryEvent(name, version, "tagged", next_pointer(happened), reason=tag))

    def _untag(self, version: ModelVersion, tag: str) -> None:
        pointer = next_pointer(self._read_events(version.name))
        self._append(RegistryEvent(version.name, version.version, "untagged", pointer, reason=tag))

    def _discard(self, name: str, version: int, key: str) -> None:
        if key:
            self._remove_archive(name, version, key)
        self._append(RegistryEvent(name, version, "dropped"))

    def _bury(self, dropped: ModelVersion) -> None:
        """Discard a version like `_discard`. If it was current, another one becomes current."""
        self._discard(dropped.name, dropped.version, dropped.archive)
        left = [version.version for version in self._versions(dropped.name) if version.state == "ready"]
        if dropped.current and left:
            pointer = next_pointer(self._read_events(dropped.name))
            self._append(RegistryEvent(dropped.name, max(left), "current", pointer))

    def _all_versions(self, name: str) -> Versions:
        return fold_events(self._read_events(name))


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
