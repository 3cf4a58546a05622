"""Names of models in storage to which events are only added.

A model that is renamed keeps its events and archives under its first name. Two events stand for it: `received` under
the new name, which has no effect by itself, and then `renamed` under the old one, which makes both effective at once.
Both have the same key, and claim a version of their name: what is below belongs to the time before, a *life* of the
name.

    old: 1 saving, ready   2 saving, ready   3 renamed to new       4 saving, ready: another model of the old name
    new: 1 received from old                 2 saving, ready: the next version is 3, as 1 and 2 are there
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from edl.models.registry.records import RegistryEvent

ReadEvents = Callable[[str], list[RegistryEvent]]

_UNDER_WAY = timedelta(minutes=10)  # a later hint without its counterpart is of a process that died


class StoredEvent(NamedTuple):
    """Event, and the name under which it is stored."""

    home: str
    event: RegistryEvent


def resolve_events(name: str, read: ReadEvents, end: RegistryEvent | None = None) -> list[StoredEvent]:
    """Return a name's events, except events of renaming: of its last life, or of the life that the event `end` ends.

    read: returns the events that are stored under a name.
    """
    life = _select_life(read(name), end)
    inherited: list[StoredEvent] = []
    since = 0
    for received in sorted(_of_kind(life, "received"), key=_version, reverse=True):
        if (renamed := _find_counterpart(received, read)) is not None:
            inherited, since = resolve_events(received.reason, read, renamed), received.version
            break
    events_here = [
        StoredEvent(name, event)
        for event in life
        if event.version > since and event.event not in ("received", "renamed")
    ]
    return [*inherited, *events_here]


def is_under_way(name: str, read: ReadEvents) -> bool:
    """Return True if another writer is giving a model this name."""
    before = (datetime.now(UTC) - _UNDER_WAY).isoformat(timespec="milliseconds")
    hints = _of_kind(_select_life(read(name), None), "received")
    return any(hint.created > before and _find_counterpart(hint, read) is None for hint in hints)


def _select_life(events: Iterable[RegistryEvent], end: RegistryEvent | None) -> list[RegistryEvent]:
    events = list(events)
    ends = [event.version for event in _of_kind(events, "renamed")]
    if end is None:
        return [event for event in events if event.version > max(ends, default=0)]
    start = max((version for version in ends if version < end.version), default=0)
    return [event for event in events if start < event.version < end.version]


def _find_counterpart(received: RegistryEvent, read: ReadEvents) -> RegistryEvent | None:
    return next(
        (event for event in _of_kind(read(received.reason), "renamed") if event.archive == received.archive),
        None,
    )


def _of_kind(events: Iterable[RegistryEvent], kind: str) -> list[RegistryEvent]:
    return [event for event in events if event.event == kind]


def _version(event: RegistryEvent) -> int:
    return event.version
