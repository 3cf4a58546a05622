"""Model registry in a database: a table of versions, a table of archive chunks, and one of tags and of facts
once there are any.

A model is never a table of its name. The current version of a name changes in the transaction that publishes the new
one. One implementation serves every database (`edl.models.registry.own_tables`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edl.data.names import PROBE
from edl.data.source import Source
from edl.errors import SourceError
from edl.models.registry.base import Registry, Versions, now
from edl.models.registry.own_tables import OwnTables, make_marks, read_pieces
from edl.models.registry.records import ModelRecord, ModelVersion, State, split_reference

MODELS = "sqlflow_edl_models"
CHUNKS = "sqlflow_edl_chunks"
TAGS = "sqlflow_edl_tags"
FACTS = "sqlflow_edl_facts"

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
_FACT_COLUMNS = {"name": "VARCHAR(512) NOT NULL", "fact": "VARCHAR(64) NOT NULL", "content": "{text}"}
_TABLES = {
    MODELS: (_MODEL_COLUMNS, "name, version"),
    CHUNKS: (_CHUNK_COLUMNS, "archive, position"),
    TAGS: (_TAG_COLUMNS, "name, tag"),
    FACTS: (_FACT_COLUMNS, "name, fact"),
}


class TableRegistry(Registry):
    """Models of one data source with tables that transactions can change."""

    def __init__(self, source: Source) -> None:
        self._own = OwnTables(source, _TABLES, "models")
        super().__init__(source.url)
        self._source = source
        self._models = source.home + MODELS
        self._chunks = source.home + CHUNKS
        self._tags = source.home + TAGS
        self._facts_table = source.home + FACTS

    def drop(self, reference: str) -> int:
        name, selector = split_reference(reference)
        versions = [version for version in self._versions(name) if version.is_selected(selector)]
        if not versions:
            raise self._unknown(reference)

        has_facts = self._own.exists(FACTS)

        def remove() -> None:
            for version in versions:
                self._own.run(f"DELETE FROM {self._chunks} WHERE archive = ?", version.archive)
                for tag in version.tags:
                    self._remove_tag(version, tag)
            if selector is None:
                self._own.run(f"DELETE FROM {self._models} WHERE name = ?", name)
                if has_facts:
                    self._own.run(f"DELETE FROM {self._facts_table} WHERE name = ?", name)
            else:
                self._bury(versions[0])

        self._own.retry(remove)
        return len(versions)

    # Steps of writing ------------------------------------------------------------------------------------

    def _add(self, name: str, state: State, record: ModelRecord, *, key: str = "", reason: str = "") -> int:
        def add() -> int:
            highest = self._own.rows(f"SELECT max(version) AS n FROM {self._models} WHERE name = ?", name)[0][
                "n"
            ]
            version = (highest or 0) + 1
            values = (
                name, version, state, 0, now(), record.model, record.framework, record.rows,
                msgspec.json.encode(record.metrics).decode(), record.statement, reason, key, 0, "",
            )  # fmt: skip
            self._own.run(f"INSERT INTO {self._models} VALUES ({make_marks(len(values))})", *values)
            return version

        return self._own.retry(add)

    def _publish(self, name: str, version: int, size: int, digest: str, *, current: bool) -> None:
        def publish() -> None:
            where = "WHERE name = ? AND version = ?"
            if not self._own.rows(f"SELECT version FROM {self._models} {where}", name, version):
                raise SourceError(f"model {name} was dropped while it was being saved")
            if current:
                self._point(name, version)
            self._own.run(
                f"UPDATE {self._models} SET state = 'ready', archive_bytes = ?, sha256 = ? {where}",
                *(size, digest, name, version),
            )

        self._own.retry(publish)

    def _activate(self, name: str, version: int) -> None:
        def activate() -> None:
            ready = [other.version for other in self._versions(name) if other.state == "ready"]
            if version not in ready:
                raise self._unknown(f"{name}@{version}")
            self._point(name, version)

        self._own.retry(activate)

    def _point(self, name: str, version: int) -> None:
        """Make a version the current one; 0 is none.

        The row of the current version points to itself. Every row of the name is changed, so one of two concurrent
        writers gets a conflict.
        """
        self._own.run(f"UPDATE {self._models} SET current_version = ? WHERE name = ?", version, name)

    def _tag(self, name: str, version: int, tag: str) -> None:
        def set_tag() -> None:
            self._own.create(TAGS)
            if not any(other.version == version and other.state == "ready" for other in self._versions(name)):
                raise self._unknown(f"{name}@{version}")
            self._own.run(f"DELETE FROM {self._tags} WHERE name = ? AND tag = ?", name, tag)
            self._own.run(f"INSERT INTO {self._tags} VALUES (?, ?, ?)", name, tag, version)

        self._own.retry(set_tag)

    def _untag(self, version: ModelVersion, tag: str) -> None:
        self._own.retry(lambda: self._remove_tag(version, tag))

    def _remove_tag(self, version: ModelVersion, tag: str) -> None:
        where = "WHERE name = ? AND tag = ? AND version = ?"
        self._own.run(f"DELETE FROM {self._tags} {where}", version.name, tag, version.version)

    def _describe(self, name: str, facts: Mapping[str, str]) -> None:
        def describe() -> None:
            self._own.create(FACTS)
            for fact, content in facts.items():
                self._own.run(f"DELETE FROM {self._facts_table} WHERE name = ? AND fact = ?", name, fact)
                if content:
                    self._own.run(f"INSERT INTO {self._facts_table} VALUES (?, ?, ?)", name, fact, content)

        self._own.retry(describe)

    def _facts(self, name: str) -> dict[str, str]:
        if not self._own.exists(FACTS):
            return {}
        rows = self._own.rows(f"SELECT fact, content FROM {self._facts_table} WHERE name = ?", name)
        return {row["fact"]: row["content"] for row in rows}

    def _rename(self, name: str, new_name: str) -> None:
        further = [
            name_of
            for table, name_of in ((TAGS, self._tags), (FACTS, self._facts_table))
            if self._own.exists(table)
        ]

        def rename() -> None:
            if any(other.state != "dropped" for other in self._all_versions(new_name)):
                raise self._name_taken_error(new_name)
            if not self._versions(name):
                raise self._unknown(name)
            self._own.run(f"DELETE FROM {self._models} WHERE name = ?", new_name)  # dropped ones
            for table in (self._models, *further):
                self._own.run(f"UPDATE {table} SET name = ? WHERE name = ?", new_name, name)

        self._own.retry(rename)

    def _upload(self, name: str, version: int, key: str, archive: Path) -> tuple[int, str]:
        """Write the archive in transactions of bounded size. Return its size and digest."""
        digest, size = hashlib.sha256(), 0

        def read() -> Iterator[bytes]:
            nonlocal size
            for chunk in read_pieces(file):
                digest.update(chunk)
                size += len(chunk)
                yield chunk

        with archive.open("rb") as file:
            self._own.insert_chunks(CHUNKS, [key], read())
        return size, digest.hexdigest()

    def _bury(self, dropped: ModelVersion) -> None:
        """Discard a ready version. If it was current, another one becomes current."""
        self._own.run(
            f"UPDATE {self._models} SET state = 'dropped', archive = '' WHERE name = ? AND version = ?",
            *(dropped.name, dropped.version),
        )
        left = [version for version in self._versions(dropped.name) if version.state == "ready"]
        if not any(version.current for version in left):
            self._point(dropped.name, max((version.version for version in left), default=0))

    def _discard(self, name: str, version: int, key: str) -> None:
        def discard() -> None:
            self._own.run(f"DELETE FROM {self._chunks} WHERE archive = ?", key)
            self._own.run(
                f"UPDATE {self._models} SET state = 'dropped' WHERE name = ? AND version = ?", name, version
            )

        self._own.retry(discard)

    def _prepare(self) -> None:
        def make() -> None:
            for table in (MODELS, CHUNKS):
                self._own.create(table)

        self._own.retry(make)

    def check_rights(self, name: str) -> None:
        super().check_rights(name)
        is_made = self._own.exists(MODELS)
        creates = f"CREATE TABLE {self._source.home}{PROBE} (a INTEGER)"
        self._source.check_rights(self._changes_of_nothing() if is_made else [creates])

    def _try_writing(self) -> None:
        def change_nothing() -> None:
            for change in self._changes_of_nothing():
                self._own.run(change)

        self._own.retry(change_nothing)

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

    # Steps of reading ------------------------------------------------------------------------------------

    def _all_versions(self, name: str) -> Versions:
        return self._select("name = ?", name)

    def _list_versions(self, like: str | None) -> Versions:
        return self._select("name LIKE ?", like) if like is not None else self._select("1 = 1")

    def _select(self, where: str, *values: object) -> Versions:
        columns = self._own.columns(MODELS, TAGS)
        if not self._own.is_there(MODELS, columns):
            return []
        query = f"SELECT * FROM {self._models} WHERE {where} ORDER BY name, version"
        rows = self._own.rows(query, *values)
        tags = self._read_tags(where, *values) if self._own.is_there(TAGS, columns) else {}
        return [_version(row, tags.get((row["name"], row["version"]), ())) for row in rows]

    def _read_tags(self, where: str, *values: object) -> dict[tuple[str, int], list[str]]:
        """Return the tags of each version."""
        tags: dict[tuple[str, int], list[str]] = {}
        query = f"SELECT * FROM {self._tags} WHERE {where} ORDER BY tag"
        for row in self._own.rows(query, *values):
            tags.setdefault((row["name"], row["version"]), []).append(row["tag"])
        return tags

    def _download(self, version: ModelVersion) -> Iterator[bytes]:
        return self._own.read_chunks(CHUNKS, {"archive": version.archive})


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
