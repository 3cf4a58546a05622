"""Model registry in append-only storage: a table of events of models, and one of archives.

A version's number is a partition, which the database adds only once, so adding it claims the number. Events of a
version are rows in its partition. An archive is a partition of its own.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from edl.data.source import ConflictError, Source
from edl.models.registry.base import foreign_error
from edl.models.registry.events import EventRegistry, Events
from edl.models.registry.records import ModelRecord, ModelVersion, RegistryEvent

EVENTS = "sqlflow_edl_models"
ARCHIVES = "sqlflow_edl_archives"
PIECE_BYTES = 4 << 20  # values are limited to 8 MB

_COLUMNS = {
    "name": "STRING",
    "event": "STRING",  # of `What`
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
_KEY, _VERSION = "model_key", "version"  # partition columns of EVENTS


class Appendable(Source, Protocol):
    """Source of tables with partitions and unchanging rows."""

    def columns_of(self, table: str) -> Sequence[str]:
        """Return the names of a table's columns, partition columns last; empty if there is no such table."""
        ...

    def partitions(self, table: str) -> Sequence[dict[str, str]]:
        """Return the partitions of a table; empty if there is no such table."""
        ...

    def add_partition(self, table: str, values: dict[str, str]) -> None:
        """Add a partition. Raises ConflictError if it exists."""
        ...

    def drop_partition(self, table: str, values: dict[str, str]) -> None: ...

    def replace_partition(self, table: str, values: dict[str, str], batches: Iterator[pa.RecordBatch]) -> int:
        """Replace a partition by these rows, in this order, once all are uploaded. Return their number."""
        ...

    def read_partition(self, table: str, values: dict[str, str]) -> Iterator[pa.RecordBatch]: ...


class AppendedRegistry(EventRegistry):
    """Models of a source that is `Appendable`."""

    def __init__(self, source: Appendable) -> None:
        super().__init__(source.url)
        self._source = source

    # Steps of writing ------------------------------------------------------------------------------------

    def _try_writing(self) -> None:
        """Do nothing: what is appended stays."""

    def _claim(self, name: str, above: int = 0) -> int:
        highest = max(above, *self._numbers(name), 0)
        for version in itertools.count(highest + 1):
            try:
                self._source.add_partition(EVENTS, _partition(name, version))
            except ConflictError:
                continue
            break
        return version

    def _append(self, event: RegistryEvent) -> None:
        row = ", ".join(f"CAST(? AS {kind})" for kind in _COLUMNS.values())
        partition = ", ".join(
            f"{column}='{value}'" for column, value in _partition(event.name, event.version).items()
        )
        values = _values(event)
        self._source.execute(
            f"INSERT INTO TABLE {EVENTS} PARTITION ({partition}) SELECT {row}",
            [values.get(column) for column in _COLUMNS],
        )

    def _upload(self, name: str, version: int, key: str, archive: Path) -> tuple[int, str]:
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

    def _remove_archive(self, name: str, version: int, key: str) -> None:
        self._source.drop_partition(ARCHIVES, {"archive": key})

    def _prepare(self) -> None:
        self._exists(EVENTS)
        columns = ", ".join(f"{column} {kind}" for column, kind in _COLUMNS.items())
        partitions = f"{_KEY} STRING, {_VERSION} BIGINT"
        for table in (
            f"{EVENTS} ({columns}) PARTITIONED BY ({partitions})",
            f"{ARCHIVES} (position BIGINT, data BINARY) PARTITIONED BY (archive STRING)",
        ):
            self._source.execute(f"CREATE TABLE IF NOT EXISTS {table}")

    # Steps of reading ------------------------------------------------------------------------------------

    def _read_all_events(self) -> Events:
        return self._events("1 = 1")

    def _read_events(self, name: str) -> Events:
        return self._events(f"{_KEY} = ? AND name = ?", _key(name), name)

    def _events(self, where: str, *values: object) -> Events:
        if not self._exists(EVENTS):
            return []
        reader = self._source.execute(f"SELECT * FROM {EVENTS} WHERE {where}", values)
        return [_event(row) for row in reader.read_all().to_pylist()] if reader is not None else []

    def _numbers(self, name: str) -> Iterator[int]:
        """Yield the claimed versions."""
        for values in self._source.partitions(EVENTS):
            if values[_KEY] == _key(name):
                yield int(values[_VERSION])

    def _download(self, version: ModelVersion) -> Iterator[bytes]:
        for batch in self._source.read_partition(ARCHIVES, {"archive": version.archive}):
            yield from batch.column("data").to_pylist()

    def _exists(self, table: str) -> bool:
        columns = self._source.columns_of(table)
        if columns and tuple(columns) != (*_COLUMNS, _KEY, _VERSION):
            raise foreign_error(table)
        return bool(columns)


def _key(name: str) -> str:
    """Return a name as a partition's value."""
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def _partition(name: str, version: int) -> dict[str, str]:
    return {_KEY: _key(name), _VERSION: str(version)}


def _values(event: RegistryEvent) -> dict[str, object]:
    """Return the event as a row."""
    values = {
        "name": event.name,
        "event": event.event,
        "pointer": event.pointer,
        "created": event.created,
        "reason": event.reason,
        "archive": event.archive,
        "archive_bytes": event.archive_bytes,
        "sha256": event.sha256,
    }
    if event.record is None:
        return values
    return values | {
        "model": event.record.model,
        "framework": event.record.framework,
        "row_count": event.record.rows,
        "metrics": msgspec.json.encode(event.record.metrics).decode(),
        "statement": event.record.statement,
    }


def _event(row: dict[str, Any]) -> RegistryEvent:
    record = None
    if row["metrics"] is not None:
        metrics = msgspec.json.decode(row["metrics"], type=dict[str, float | None])
        record = ModelRecord(row["model"], row["framework"], row["row_count"], metrics, row["statement"])
    return RegistryEvent(
        name=row["name"],
        version=row[_VERSION],
        event=row["event"],
        pointer=row["pointer"] or 0,
        created=row["created"] or "",
        record=record,
        reason=row["reason"] or "",
        archive=row["archive"] or "",
        archive_bytes=row["archive_bytes"] or 0,
        sha256=row["sha256"] or "",
    )
