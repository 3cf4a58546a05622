"""Model registry in a database: a table of versions, a table of archive chunks, and one of tags once there are any.

A model is never a table of its name. The current version of a name changes in the transaction that publishes the new
one. One implementation serves every database, through `Source.execute` and `Source.transaction`; `DIALECTS` holds
their differences. A user's table with the same name is never modified.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from edl.data.names import PROBE
from edl.data.source import ConflictError, Source
from edl.errors import SourceError
from edl.models.registry.base import Registry, Versions, foreign_error, now
from edl.models.registry.records import ModelRecord, ModelVersion, State, split_reference

T = TypeVar("T")
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RegistryDialect:
    """Properties of a database that the registry depends on."""

    text: str  # type of unlimited text
    blob: str  # type of at least CHUNK_BYTES bytes
    columns: str  # query for the columns of two tables; its parameters are `Source.home` and the tables
    options: str = ""  # options of a new table


DIALECTS = {
    "duckdb": RegistryDialect(
        text="VARCHAR",
        blob="BLOB",
        columns="SELECT table_name, column_name FROM duckdb_columns() WHERE table_name IN (?2, ?3) AND "
        """'"' || replace(database_name, '"', '""') || '"."' || schema_name || '".' = ?1""",
    ),
    "sqlite": RegistryDialect(
        text="TEXT",
        blob="BLOB",
        columns="SELECT ?2 AS table_name, name AS column_name FROM pragma_table_info(?2, 'main') WHERE ?1 = '\"main\".'"
        " UNION ALL SELECT ?3, name FROM pragma_table_info(?3, 'main') WHERE ?1 = '\"main\".'",
    ),
    "mysql": RegistryDialect(
        text="LONGTEXT",
        blob="LONGBLOB",
        columns="SELECT table_name AS table_name, column_name AS column_name FROM information_schema.columns WHERE"
        " table_schema = REPLACE(TRIM(BOTH '`' FROM TRIM(TRAILING '.' FROM ?)), '``', '`') AND table_name IN (?, ?)",
        options=" ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
    ),
    "postgres": RegistryDialect(
        text="TEXT",
        blob="BYTEA",
        columns="SELECT relname::text AS table_name, attname::text AS column_name FROM pg_attribute"
        " JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE attnum > 0 AND NOT attisdropped"
        """ AND '"' || replace(nspname, '"', '""') || '".' = ? AND relname IN (?, ?)""",
    ),
}

MODELS = "sqlflow_edl_models"
CHUNKS = "sqlflow_edl_chunks"
TAGS = "sqlflow_edl_tags"

# Databases read a column in vectors of up to some thousand values at once, so that small chunks bound their memory.
CHUNK_BYTES = 64 << 10
CHUNKS_PER_INSERT = 16
CHUNKS_PER_READ = 256
INSERTS_PER_TRANSACTION = 32

_ATTEMPTS = 50  # of a transaction with conflicts

_MODEL_COLUMNS = {
    "name": "VARCHAR(512) NOT NULL",
    "version": "INTEGER NOT NULL",
    "state": "VARCHAR(16) NOT NULL",
    "current_version": "INTEGER NOT NULL",
    "created": "VARCHAR(32) NOT NULL",
    "model": "{text}",
    "framework": "VARCHAR(16)",
    "row_count": "BIGINT",
    "metrics": "{text}",
    "statement": "{text}",
    "reason": "{text}",
    "archive": "VARCHAR(32) NOT NULL",
    "archive_bytes": "BIGINT",
    "sha256": "VARCHAR(64)",
}
_CHUNK_COLUMNS = {
    "archive": "VARCHAR(32) NOT NULL",
    "position": "INTEGER NOT NULL",
    "data": "{blob} NOT NULL",
}
_TAG_COLUMNS = {"name": "VARCHAR(512) NOT NULL", "tag": "VARCHAR(64) NOT NULL", "version": "INTEGER NOT NULL"}
_TABLES = {
    MODELS: (_MODEL_COLUMNS, "name, version"),
    CHUNKS: (_CHUNK_COLUMNS, "archive, position"),
    TAGS: (_TAG_COLUMNS, "name, tag"),
}


class TableRegistry(Registry):
    """Models of one data source with tables that transactions can change."""

    def __init__(self, source: Source) -> None:
        if source.dialect not in DIALECTS:
            raise SourceError(f"data sources of the dialect {source.dialect} cannot store models yet")
        super().__init__(source.url)
        self._source = source
        self._dialect = DIALECTS[source.dialect]
        self._models = source.home + MODELS
        self._chunks = source.home + CHUNKS
        self._tags = source.home + TAGS

    def drop(self, reference: str) -> int:
        name, selector = split_reference(reference)
        versions = [version for version in self._versions(name) if version.is_selected(selector)]
        if not versions:
            raise self._unknown(reference)

        def remove() -> None:
            for version in versions:
                self._run(f"DELETE FROM {self._chunks} WHERE archive = ?", version.archive)
                for tag in version.tags:
                    self._remove_tag(version, tag)
            if selector is None:
                self._run(f"DELETE FROM {self._models} WHERE name = ?", name)
            else:
                self._bury(versions[0])

        self._retry(remove)
        return len(versions)

    # Steps of writing ------------------------------------------------------------------------------------

    def _add(self, name: str, state: State, record: ModelRecord, *, key: str = "", reason: str = "") -> int:
        def add() -> int:
            highest = self._rows(f"SELECT max(version) AS n FROM {self._models} WHERE name = ?", name)[0]["n"]
            version = (highest or 0) + 1
            values = (
                name, version, state, 0, now(), record.model, record.framework, record.rows,
                msgspec.json.encode(record.metrics).decode(), record.statement, reason, key, 0, "",
            )  # fmt: skip
            self._run(f"INSERT INTO {self._models} VALUES ({_marks(len(values))})", *values)
            return version

        return self._retry(add)

    def _publish(self, name: str, version: int, size: int, digest: str, *, current: bool) -> None:
        def publish() -> None:
            where = "WHERE name = ? AND version = ?"
            if not self._rows(f"SELECT version FROM {self._models} {where}", name, version):
                raise SourceError(f"model {name} was dropped while it was being saved")
            if current:
                self._point(name, version)
            self._run(
                f"UPDATE {self._models} SET state = 'ready', archive_bytes = ?, sha256 = ? {where}",
                *(size, digest, name, version),
            )

        self._retry(publish)

    def _activate(self, name: str, version: int) -> None:
        def activate() -> None:
            ready = [other.version for other in self._versions(name) if other.state == "ready"]
            if version not in ready:
                raise self._unknown(f"{name}@{version}")
            self._point(name, version)

        self._retry(activate)

    def _point(self, name: str, version: int) -> None:
        """Make a version the current one; 0 is none.

        The row of the current version points to itself. Every row of the name is changed, so one of two concurrent
        writers gets a conflict.
        """
        self._run(f"UPDATE {self._models} SET current_version = ? WHERE name = ?", version, name)

    def _tag(self, name: str, version: int, tag: str) -> None:
        def set_tag() -> None:
            self._create(TAGS)
            if not any(other.version == version and other.state == "ready" for other in self._versions(name)):
                raise self._unknown(f"{name}@{version}")
            self._run(f"DELETE FROM {self._tags} WHERE name = ? AND tag = ?", name, tag)
            self._run(f"INSERT INTO {self._tags} VALUES (?, ?, ?)", name, tag, version)

        self._retry(set_tag)

    def _untag(self, version: ModelVersion, tag: str) -> None:
        self._retry(lambda: self._remove_tag(version, tag))

    def _remove_tag(self, version: ModelVersion, tag: str) -> None:
        where = "WHERE name = ? AND tag = ? AND version = ?"
        self._run(f"DELETE FROM {self._tags} {where}", version.name, tag, version.version)

    def _upload(self, name: str, version: int, key: str, archive: Path) -> tuple[int, str]:
        """Write the archive in transactions of bounded size. Return its size and digest."""
        digest, size = hashlib.sha256(), 0
        with archive.open("rb") as file:
            chunks = enumerate(_pieces(file))
            groups = iter(lambda: list(itertools.islice(chunks, CHUNKS_PER_INSERT)), [])
            for first in groups:
                with self._source.transaction():
                    for group in itertools.chain(
                        [first], itertools.islice(groups, INSERTS_PER_TRANSACTION - 1)
                    ):
                        self._insert_chunks(key, group)
                        for _, chunk in group:
                            digest.update(chunk)
                            size += len(chunk)
        return size, digest.hexdigest()

    def _insert_chunks(self, key: str, chunks: Sequence[tuple[int, bytes]]) -> None:
        rows = ", ".join(["(?, ?, ?)"] * len(chunks))
        values = [value for position, chunk in chunks for value in (key, position, chunk)]
        self._run(f"INSERT INTO {self._chunks} VALUES {rows}", *values)

    def _bury(self, dropped: ModelVersion) -> None:
        """Discard a ready version. If it was current, another one becomes current."""
        self._run(
            f"UPDATE {self._models} SET state = 'dropped', archive = '' WHERE name = ? AND version = ?",
            *(dropped.name, dropped.version),
        )
        left = [version for version in self._versions(dropped.name) if version.state == "ready"]
        if not any(version.current for version in left):
            self._point(dropped.name, max((version.version for version in left), default=0))

    def _discard(self, name: str, version: int, key: str) -> None:
        def discard() -> None:
            self._run(f"DELETE FROM {self._chunks} WHERE archive = ?", key)
            self._run(
                f"UPDATE {self._models} SET state = 'dropped' WHERE name = ? AND version = ?", name, version
            )

        self._retry(discard)

    def _prepare(self) -> None:
        def make() -> None:
            for table in (MODELS, CHUNKS):
                self._create(table)

        self._retry(make)

    def check_rights(self, name: str) -> None:
        super().check_rights(name)
        is_made = self._exists(MODELS)
        creates = f"CREATE TABLE {self._source.home}{PROBE} (a INTEGER)"
        self._source.check_rights(self._changes_of_nothing() if is_made else [creates])

    def _try_writing(self) -> None:
        def change_nothing() -> None:
            for change in self._changes_of_nothing():
                self._run(change)

        self._retry(change_nothing)

    def _changes_of_nothing(self) -> list[str]:
        """Return statements that change no rows, for which a database demands the same rights."""
        changes = [
            change
            for table in (self._models, self._chunks)
            for change in (
                f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0",
                f"DELETE FROM {table} WHERE 1 = 0",
            )
        ]
        return [*changes, f"UPDATE {self._models} SET state = state WHERE 1 = 0"]

    def _create(self, table: str) -> None:
        """Create the table if it does not exist."""
        if self._exists(table):
            return
        columns, key = _TABLES[table]
        facts = {"text": self._dialect.text, "blob": self._dialect.blob}
        parts = ", ".join(f"{column} {kind.format(**facts)}" for column, kind in columns.items())
        name, options = self._source.home + table, self._dialect.options
        self._run(f"CREATE TABLE {name} ({parts}, PRIMARY KEY ({key})){options}")

    def _retry(self, work: Callable[[], T]) -> T:
        """Do the work in a transaction, with retries after conflicts with other connections."""
        for _ in range(_ATTEMPTS - 1):
            try:
                with self._source.transaction():
                    return work()
            except ConflictError:
                continue
        with self._source.transaction():
            return work()

    # Steps of reading ------------------------------------------------------------------------------------

    def _all_versions(self, name: str) -> Versions:
        return self._select("name = ?", name)

    def _list_versions(self, like: str | None) -> Versions:
        return self._select("name LIKE ?", like) if like is not None else self._select("1 = 1")

    def _select(self, where: str, *values: object) -> Versions:
        columns = self._columns(MODELS, TAGS)
        if not _is_there(MODELS, columns):
            return []
        query = f"SELECT * FROM {self._models} WHERE {where} ORDER BY name, version"
        rows = self._rows(query, *values)
        tags = self._read_tags(where, *values) if _is_there(TAGS, columns) else {}
        return [_version(row, tags.get((row["name"], row["version"]), ())) for row in rows]

    def _read_tags(self, where: str, *values: object) -> dict[tuple[str, int], list[str]]:
        """Return the tags of each version."""
        tags: dict[tuple[str, int], list[str]] = {}
        query = f"SELECT * FROM {self._tags} WHERE {where} ORDER BY tag"
        for row in self._rows(query, *values):
            tags.setdefault((row["name"], row["version"]), []).append(row["tag"])
        return tags

    def _download(self, version: ModelVersion) -> Iterator[bytes]:
        query = (
            f"SELECT position, data FROM {self._chunks} WHERE archive = ? AND position >= ? AND position < ?"
            " ORDER BY position"
        )
        for start in itertools.count(0, CHUNKS_PER_READ):
            rows = self._rows(query, version.archive, start, start + CHUNKS_PER_READ)
            yield from (row["data"] for row in rows)
            if len(rows) < CHUNKS_PER_READ:
                return

    def _exists(self, table: str) -> bool:
        """Return True if the table exists. Raises SourceError if a foreign table has its name."""
        return _is_there(table, self._columns(table, table))

    def _columns(self, table: str, other: str) -> dict[str, set[str]]:
        """Return the columns of the existing tables among the two."""
        columns_of_tables: dict[str, set[str]] = {}
        for row in self._rows(self._dialect.columns, self._source.home, table, other):
            columns_of_tables.setdefault(row["table_name"], set()).add(row["column_name"])
        return columns_of_tables

    def _run(self, sql: str, *values: object) -> None:
        self._source.execute(sql, values)

    def _rows(self, query: str, *values: object) -> Rows:
        reader = self._source.execute(query, values)
        return reader.read_all().to_pylist() if reader is not None else []


def _is_there(table: str, columns: Mapping[str, set[str]]) -> bool:
    """Return True if the table is among those with columns. Raises SourceError if it is a foreign one."""
    names = columns.get(table)
    if names and names != set(_TABLES[table][0]):
        raise foreign_error(table)
    return bool(names)


def _version(row: dict[str, Any], tags: Sequence[str]) -> ModelVersion:
    return ModelVersion(
        name=row["name"],
        version=row["version"],
        state=row["state"],
        current=row["current_version"] == row["version"],
        created=row["created"],
        record=ModelRecord(
            model=row["model"],
            framework=row["framework"],
            rows=row["row_count"],
            metrics=msgspec.json.decode(row["metrics"], type=dict[str, float | None]),
            statement=row["statement"],
        ),
        reason=row["reason"],
        archive=row["archive"],
        archive_bytes=row["archive_bytes"],
        sha256=row["sha256"],
        tags=tuple(tags),
    )


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(CHUNK_BYTES):
        yield piece


def _marks(count: int) -> str:
    return ", ".join("?" * count)
