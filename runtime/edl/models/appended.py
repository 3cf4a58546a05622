"""The registry where rows can be added and never changed: a table of what happened to models, and one of archives.

A version's number is a partition, and whoever adds it owns the number: the database adds a partition once. What happens
to a version is a row in its partition. The current version of a name is the one that was pointed to last; pointers
count up, and of two that were made at once the one to the higher version counts. An archive is a partition of its own.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import pyarrow as pa

from edl.data.source import ConflictError, Source
from edl.errors import SourceError
from edl.models import registry
from edl.models.records import ModelRecord, ModelVersion, State, split_reference

EVENTS = "sqlflow_edl_models"
ARCHIVES = "sqlflow_edl_archives"
PIECE_BYTES = 4 << 20  # a value has at most 8 MB there

_COLUMNS = {
    "name": "STRING",
    "event": "STRING",  # saving, failed, ready, current, dropped
    "pointer": "BIGINT",
    "created": "STRING",
    "model": "STRING",
    "framework": "STRING",
    "row_count": "BIGINT",
    "metrics": "STRING",
    "statement": "STRING",
    "reason": "STRING",
    "archive": "STRING",
    "archive_bytes": "BIGINT",
    "sha256": "STRING",
}
_KEY, _VERSION = "model_key", "version"  # the partitions of EVENTS
_STALE = timedelta(days=1)

T = TypeVar("T")
Event = dict[str, Any]
Events = list[Event]  # named here, because inside the class `list` is its method


class Appendable(Source, Protocol):
    """A source whose tables have partitions, and whose rows do not change."""

    def columns_of(self, table: str) -> Sequence[str]:
        """The names of a table's columns, its partitions' last; none where there is no such table."""
        ...

    def partitions(self, table: str) -> Sequence[dict[str, str]]:
        """The partitions of a table, none where there is no such table."""
        ...

    def add_partition(self, table: str, values: dict[str, str]) -> None:
        """ConflictError: it is there."""
        ...

    def drop_partition(self, table: str, values: dict[str, str]) -> None: ...

    def replace_partition(self, table: str, values: dict[str, str], batches: Iterator[pa.RecordBatch]) -> int:
        """Make the partition one of these rows, in this order, when all are there; how many."""
        ...

    def read_partition(self, table: str, values: dict[str, str]) -> Iterator[pa.RecordBatch]: ...


class AppendedRegistry(registry.Registry):
    """`Registry` for a source that is `Appendable`."""

    _source: Appendable

    def __init__(self, source: Appendable) -> None:
        self._source = source

    def drop(self, reference: str) -> int:
        name, version = split_reference(reference)
        versions = [found for found in self._all_versions(name) if version in (None, found.version)]
        visible = [found for found in versions if found.state in ("ready", "failed")]
        if not visible:
            raise self._unknown(reference)
        for found in versions if version is None else visible:
            self._bury(found)
        return len(visible)

    def list(self, like: str | None = None) -> registry.Versions:
        return self._select("name LIKE ?", like) if like is not None else self._select("1 = 1")

    # Steps of writing ------------------------------------------------------------------------------------

    def _add(self, name: str, state: State, record: ModelRecord, *, key: str = "", reason: str = "") -> int:
        highest = max(self._numbers(name), default=0)
        for version in itertools.count(highest + 1):
            try:
                self._source.add_partition(EVENTS, _partition(name, version))
            except ConflictError:
                continue
            break
        self._append(
            name,
            version,
            state,
            created=registry.now(),
            model=record.model,
            framework=record.framework,
            row_count=record.rows,
            metrics=msgspec.json.encode(record.metrics).decode(),
            statement=record.statement,
            reason=reason,
            archive=key,
        )
        return version

    def _publish(self, name: str, version: int, size: int, digest: str) -> None:
        happened = self._happened(name)
        if any(event["event"] == "dropped" and event[_VERSION] == version for event in happened):
            raise SourceError(f"model {name} was dropped while it was being saved")
        self._append(
            name, version, "ready", pointer=_next_pointer(happened), archive_bytes=size, sha256=digest
        )

    def _point(self, name: str, version: int) -> None:
        self._append(name, version, "current", pointer=_next_pointer(self._happened(name)))

    def _upload(self, key: str, archive: Path) -> tuple[int, str]:
        digest, size = hashlib.sha256(), 0

        def pieces() -> Iterator[pa.RecordBatch]:
            nonlocal size
            with archive.open("rb") as file:
                for position in itertools.count():
                    piece = file.read(PIECE_BYTES)
                    if not piece and position:
                        return
                    digest.update(piece)
                    size += len(piece)
                    yield pa.record_batch({"position": [position], "data": pa.array([piece], pa.binary())})

        self._source.replace_partition(ARCHIVES, {"archive": key}, pieces())
        return size, digest.hexdigest()

    def _saved(self, name: str, key: str) -> int:
        for version in self._all_versions(name):
            if version.archive == key and version.state == "ready":
                return version.version
            if version.archive == key and version.state == "saving":
                self._discard(name, version.version, key)
        return 0

    def _discard(self, name: str, version: int, key: str) -> None:
        if key:
            self._source.drop_partition(ARCHIVES, {"archive": key})
        self._append(name, version, "dropped")

    def _discard_stale(self, name: str) -> None:
        before = (datetime.now(UTC) - _STALE).isoformat(timespec="milliseconds")
        for version in self._all_versions(name):
            if version.state == "saving" and version.created < before:
                self._discard(name, version.version, version.archive)

    def _bury(self, dropped: ModelVersion) -> None:
        self._discard(dropped.name, dropped.version, dropped.archive)
        left = [found.version for found in self._versions(dropped.name) if found.state == "ready"]
        if dropped.current and left:
            self._point(dropped.name, max(left))

    def _make_tables(self) -> None:
        self._exists(EVENTS)
        columns = ", ".join(f"{column} {kind}" for column, kind in _COLUMNS.items())
        partitions = f"{_KEY} STRING, {_VERSION} BIGINT"
        self._run(f"CREATE TABLE IF NOT EXISTS {EVENTS} ({columns}) PARTITIONED BY ({partitions})")
        self._run(
            f"CREATE TABLE IF NOT EXISTS {ARCHIVES} (position BIGINT, data BINARY) PARTITIONED BY (archive STRING)"
        )

    def _retried(self, work: Callable[[], T]) -> T:
        """There are no transactions; each step is whole by itself."""
        return work()

    def _append(self, name: str, version: int, event: str, **facts: object) -> None:
        values: dict[str, object] = {"name": name, "event": event, **facts}
        row = ", ".join(f"CAST(? AS {kind})" for kind in _COLUMNS.values())
        partition = ", ".join(f"{column}='{value}'" for column, value in _partition(name, version).items())
        self._run(
            f"INSERT INTO TABLE {EVENTS} PARTITION ({partition}) SELECT {row}",
            *(values.get(column) for column in _COLUMNS),
        )

    # Steps of reading ------------------------------------------------------------------------------------

    def _versions(self, name: str) -> registry.Versions:
        return [version for version in self._all_versions(name) if version.state in ("ready", "failed")]

    def _select(self, where: str, *values: object) -> registry.Versions:
        versions = _folded(self._events(where, *values))
        return [version for version in versions if version.state in ("ready", "failed")]

    def _all_versions(self, name: str) -> registry.Versions:
        return _folded(self._happened(name))

    def _happened(self, name: str) -> Events:
        return self._events(f"{_KEY} = ? AND name = ?", _key(name), name)

    def _events(self, where: str, *values: object) -> Events:
        if not self._exists(EVENTS):
            return []
        return self._rows(f"SELECT * FROM {EVENTS} WHERE {where}", *values)

    def _numbers(self, name: str) -> Iterator[int]:
        """The versions that anybody owns."""
        for values in self._source.partitions(EVENTS):
            if values[_KEY] == _key(name):
                yield int(values[_VERSION])

    def _download(self, key: str) -> Iterator[bytes]:
        for batch in self._source.read_partition(ARCHIVES, {"archive": key}):
            yield from batch.column("data").to_pylist()

    def _exists(self, table: str) -> bool:
        found = self._source.columns_of(table)
        if found and tuple(found) != (*_COLUMNS, _KEY, _VERSION):
            raise registry.foreign(table)
        return bool(found)


def _key(name: str) -> str:
    """A name as a partition's value can be."""
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def _partition(name: str, version: int) -> dict[str, str]:
    return {_KEY: _key(name), _VERSION: str(version)}


def _next_pointer(happened: Events) -> int:
    return 1 + max((event["pointer"] or 0 for event in happened), default=0)


def _folded(events: Events) -> registry.Versions:
    """What became of each version, by name and number."""
    by_version: dict[tuple[str, int], dict[str, Event]] = {}
    for event in events:
        of_version = by_version.setdefault((event["name"], event[_VERSION]), {})
        earlier = of_version.get(event["event"])
        if earlier is None or (earlier["pointer"] or 0) < (event["pointer"] or 0):
            of_version[event["event"]] = event
    begun = {key: found for key, found in by_version.items() if "saving" in found or "failed" in found}
    current = _current(begun)
    return [_version(key, found, current.get(key[0]) == key[1]) for key, found in sorted(begun.items())]


def _current(begun: dict[tuple[str, int], dict[str, Event]]) -> dict[str, int]:
    """The current version of each name."""
    pointers: dict[str, tuple[int, int]] = {}
    for (name, version), found in begun.items():
        if "ready" in found and "dropped" not in found:
            pointer = max(found[event]["pointer"] or 0 for event in ("ready", "current") if event in found)
            pointers[name] = max(pointers.get(name, (0, 0)), (pointer, version))
    return {name: version for name, (_, version) in pointers.items()}


def _version(key: tuple[str, int], found: dict[str, Event], current: bool) -> ModelVersion:
    facts = found.get("saving") or found["failed"]
    state = next(state for state in ("dropped", "ready", "failed", "saving") if state in found)
    ready = found.get("ready", {})
    return ModelVersion(
        name=key[0],
        version=key[1],
        state=state,
        current=current,
        created=facts["created"],
        record=ModelRecord(
            model=facts["model"],
            framework=facts["framework"],
            rows=facts["row_count"],
            metrics=msgspec.json.decode(facts["metrics"], type=dict[str, float | None]),
            statement=facts["statement"],
        ),
        reason=facts["reason"],
        archive=facts["archive"],
        archive_bytes=ready.get("archive_bytes") or 0,
        sha256=ready.get("sha256") or "",
    )
