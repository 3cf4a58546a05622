"""The registry of models in a data source: a table of versions and a table of archive chunks.

`INTO a.b` is the *name* of a model, never a table of that name. Every run adds a version; one version of a name is
current, and that moves in the transaction that makes the new one ready. A version number is never given twice, not
after its version was dropped and not by two writers at once. Failed runs are versions too, with their reason.

One implementation serves every database, through `Source.execute` and `Source.transaction`; what differs between
them stands in `DIALECTS`. Reading never makes a table, and a table of a user's that has our name is never touched.
"""

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from edl.data.source import ConflictError, Source
from edl.errors import SemanticError, SourceError, SpecError, did_you_mean
from edl.models.records import ModelRecord, ModelVersion, State, check_name, split_reference

T = TypeVar("T")
Versions = list[ModelVersion]  # named here, because inside Registry `list` is its method
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the registry has to know of a database."""

    text: str  # type of unlimited text
    blob: str  # type of at least CHUNK_BYTES bytes
    columns: str  # query for the columns of a table; its parameters are `Source.home` and the table
    options: str = ""  # of a new table


DIALECTS = {
    "duckdb": Dialect(
        text="VARCHAR",
        blob="BLOB",
        columns="SELECT column_name FROM duckdb_columns() WHERE table_name = ?2 AND "
        """'"' || replace(database_name, '"', '""') || '"."' || schema_name || '".' = ?1""",
    ),
    "sqlite": Dialect(
        text="TEXT",
        blob="BLOB",
        columns="SELECT name AS column_name FROM pragma_table_info(?2, 'main') WHERE ?1 = '\"main\".'",
    ),
    "mysql": Dialect(
        text="LONGTEXT",
        blob="LONGBLOB",
        columns="SELECT column_name AS column_name FROM information_schema.columns WHERE"
        " table_schema = REPLACE(TRIM(BOTH '`' FROM TRIM(TRAILING '.' FROM ?)), '``', '`') AND table_name = ?",
        options=" ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
    ),
}

APPENDED = ("maxcompute",)  # dialects of sources whose rows are never changed: see `edl.models.appended`

MODELS = "sqlflow_edl_models"
CHUNKS = "sqlflow_edl_chunks"

# Databases read a column in vectors of up to some thousand values at once, so that small chunks bound their memory.
CHUNK_BYTES = 64 << 10
CHUNKS_PER_INSERT = 16
CHUNKS_PER_READ = 256
INSERTS_PER_TRANSACTION = 32

_ATTEMPTS = 50  # of a transaction that others get in the way of
_STALE = timedelta(days=1)  # an upload that took longer was given up

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
_TABLES = {
    MODELS: (_MODEL_COLUMNS, "name, version"),
    CHUNKS: (_CHUNK_COLUMNS, "archive, position"),
}


def open_registry(source: Source) -> Registry:
    """The models of a data source, kept as it can keep them."""
    if source.dialect in APPENDED:
        from edl.models.appended import AppendedRegistry

        return AppendedRegistry(source)  # type: ignore[arg-type]
    return Registry(source)


class Registry:
    """The models of one data source whose tables can be changed in transactions."""

    def __init__(self, source: Source) -> None:
        if source.dialect not in DIALECTS:
            raise SourceError(f"data sources of the dialect {source.dialect} keep no models yet")
        self._source = source
        self._dialect = DIALECTS[source.dialect]
        self._models = source.home + MODELS
        self._chunks = source.home + CHUNKS

    # Writing ---------------------------------------------------------------------------------------------

    def save(self, name: str, archive: Path, record: ModelRecord, *, once: str = "") -> int:
        """Keep the archive as a new version of the model, and make it the current one; the version's number.

        once: at most 32 characters that nobody else uses; a call that repeats them changes nothing, however far the
        first has come.
        SemanticError: the name. SourceError: the database. After an error the model is what it was.
        """
        check_name(name)
        self._make_tables()
        self._discard_stale(name)
        key = once or secrets.token_hex(16)
        if once and (earlier := self._saved(name, key)):
            return earlier
        version = self._add(name, "saving", record, key=key)
        try:
            size, digest = self._upload(key, archive)
            self._retried(lambda: self._publish(name, version, size, digest))
        except BaseException:
            with suppress(SourceError):  # what stays is cleaned up by a later save
                self._discard(name, version, key)
            raise
        return version

    def record_failure(self, name: str, record: ModelRecord, reason: str) -> int:
        """Keep a run that failed as a version without an archive; the current version stays. Its number."""
        check_name(name)
        self._make_tables()
        return self._add(name, "failed", record, reason=reason)

    def set_current(self, reference: str) -> ModelVersion:
        """Make an earlier version the current one. SemanticError: it is unknown or not ready."""
        found = self.find(reference)
        self._retried(lambda: self._point(found.name, found.version))
        return self.find(found.reference)

    def drop(self, reference: str) -> int:
        """Drop a model, or one version of it; how many versions are gone.

        Dropping the current version makes the highest ready one current. SemanticError: there is no such model.
        """
        name, version = split_reference(reference)
        versions = [found for found in self._versions(name) if version in (None, found.version)]
        if not versions:
            raise self._unknown(reference)

        def remove() -> None:
            for found in versions:
                self._run(f"DELETE FROM {self._chunks} WHERE archive = ?", found.archive)
            if version is None:
                self._run(f"DELETE FROM {self._models} WHERE name = ?", name)
            else:
                self._bury(versions[0])

        self._retried(remove)
        return len(versions)

    # Reading ---------------------------------------------------------------------------------------------

    def find(self, reference: str) -> ModelVersion:
        """The version that `name` or `name@version` means. SemanticError: it is unknown, or it failed."""
        found = self.look_up(reference)
        if found.state != "ready":
            raise SemanticError(f"the training of model {found.reference} failed: {found.reason}")
        return found

    def look_up(self, reference: str) -> ModelVersion:
        """As `find`, a failed one too; of a name, the current version, else the last one. SemanticError: unknown."""
        name, version = split_reference(reference)
        versions = self._versions(name)
        if version is None:
            wanted = [found for found in versions if found.current] or versions[-1:]
        else:
            wanted = [found for found in versions if found.version == version]
        if not wanted:
            raise self._unknown(reference)
        return wanted[0]

    def has(self, reference: str) -> bool:
        """Whether there is such a model, or such a version, failed ones included."""
        name, version = split_reference(reference)
        return any(version in (None, found.version) for found in self._versions(name))

    def list(self, like: str | None = None) -> Versions:
        """All versions, ready and failed, by name and number. like: a pattern of SQL's LIKE on the name."""
        return self._select("name LIKE ?", like) if like is not None else self._select("1 = 1")

    def load(self, reference: str, to: Path) -> ModelVersion:
        """Write the version's archive to the file `to`, which appears when it is complete and checked.

        SemanticError: see `find`. SpecError: the archive is damaged.
        """
        found = self.find(reference)
        to.parent.mkdir(parents=True, exist_ok=True)
        partial = to.with_name(f".{to.name}.{secrets.token_hex(4)}.partial")
        digest = hashlib.sha256()
        try:
            with partial.open("wb") as file:
                for chunk in self._download(found.archive):
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != found.sha256:
                raise SpecError(
                    f"the archive of model {found.reference} is damaged", hint="train the model again"
                )
            partial.replace(to)
        finally:
            partial.unlink(missing_ok=True)
        return found

    # Steps of writing ------------------------------------------------------------------------------------

    def _add(self, name: str, state: State, record: ModelRecord, *, key: str = "", reason: str = "") -> int:
        """A new version's row; its number is one more than the name ever had."""

        def add() -> int:
            highest = self._rows(f"SELECT max(version) AS n FROM {self._models} WHERE name = ?", name)[0]["n"]
            version = (highest or 0) + 1
            values = (
                name, version, state, 0, now(), record.model, record.framework, record.rows,
                msgspec.json.encode(record.metrics).decode(), record.statement, reason, key, 0, "",
            )  # fmt: skip
            self._run(f"INSERT INTO {self._models} VALUES ({_marks(len(values))})", *values)
            return version

        return self._retried(add)

    def _publish(self, name: str, version: int, size: int, digest: str) -> None:
        if not self._rows(
            f"SELECT version FROM {self._models} WHERE name = ? AND version = ?", name, version
        ):
            raise SourceError(f"model {name} was dropped while it was being saved")
        self._point(name, version)
        self._run(
            f"UPDATE {self._models} SET state = 'ready', archive_bytes = ?, sha256 = ? WHERE name = ? AND version = ?",
            *(size, digest, name, version),
        )

    def _point(self, name: str, version: int) -> None:
        """Make a version the current one; 0 is none.

        The current version is the one whose row points to itself. Every row of the name is changed, so that of two
        who do this at once one meets a conflict.
        """
        self._run(f"UPDATE {self._models} SET current_version = ? WHERE name = ?", version, name)

    def _upload(self, key: str, archive: Path) -> tuple[int, str]:
        """Write the chunks, in transactions of bounded size; the archive's size and digest."""
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
        """Leave only the number of a version, which is not given again."""
        self._run(
            f"UPDATE {self._models} SET state = 'dropped', archive = '' WHERE name = ? AND version = ?",
            *(dropped.name, dropped.version),
        )
        left = [found for found in self._versions(dropped.name) if found.state == "ready"]
        if not any(found.current for found in left):
            self._point(dropped.name, max((found.version for found in left), default=0))

    def _saved(self, name: str, key: str) -> int:
        """The version that was made ready with this key, 0 if none was; what was begun with it is cleaned up."""
        query = f"SELECT version, state FROM {self._models} WHERE name = ? AND archive = ?"
        for row in self._rows(query, name, key):
            if row["state"] == "ready":
                return int(row["version"])
            self._discard(name, row["version"], key)
        return 0

    def _discard(self, name: str, version: int, key: str) -> None:
        def discard() -> None:
            self._run(f"DELETE FROM {self._chunks} WHERE archive = ?", key)
            self._run(
                f"UPDATE {self._models} SET state = 'dropped' WHERE name = ? AND version = ?", name, version
            )

        self._retried(discard)

    def _discard_stale(self, name: str) -> None:
        """Clean up after writers that died in the midst of an upload."""
        before = (datetime.now(UTC) - _STALE).isoformat(timespec="milliseconds")
        query = (
            f"SELECT version, archive FROM {self._models} WHERE name = ? AND state = 'saving' AND created < ?"
        )
        for row in self._rows(query, name, before):
            self._discard(name, row["version"], row["archive"])

    def _make_tables(self) -> None:
        facts = {"text": self._dialect.text, "blob": self._dialect.blob}

        def make() -> None:
            for table, (columns, key) in _TABLES.items():
                if not self._exists(table):
                    parts = ", ".join(f"{column} {kind.format(**facts)}" for column, kind in columns.items())
                    name, options = self._source.home + table, self._dialect.options
                    self._run(f"CREATE TABLE {name} ({parts}, PRIMARY KEY ({key})){options}")

        self._retried(make)

    def _retried(self, work: Callable[[], T]) -> T:
        """Do the work in a transaction, again when another connection got in its way."""
        for _ in range(_ATTEMPTS - 1):
            try:
                with self._source.transaction():
                    return work()
            except ConflictError:
                continue
        with self._source.transaction():
            return work()

    # Steps of reading ------------------------------------------------------------------------------------

    def _versions(self, name: str) -> Versions:
        return self._select("name = ?", name)

    def _select(self, where: str, *values: object) -> Versions:
        """Versions that a user may see, by name and number."""
        if not self._exists(MODELS):
            return []
        query = f"SELECT * FROM {self._models} WHERE state IN ('ready', 'failed') AND {where} ORDER BY name, version"
        return [_version(row) for row in self._rows(query, *values)]

    def _download(self, key: str) -> Iterator[bytes]:
        query = (
            f"SELECT position, data FROM {self._chunks} WHERE archive = ? AND position >= ? AND position < ?"
            " ORDER BY position"
        )
        for start in itertools.count(0, CHUNKS_PER_READ):
            rows = self._rows(query, key, start, start + CHUNKS_PER_READ)
            yield from (row["data"] for row in rows)
            if len(rows) < CHUNKS_PER_READ:
                return

    def _unknown(self, reference: str) -> SemanticError:
        name, version = split_reference(reference)
        numbers = [str(found.version) for found in self._versions(name)]
        if numbers:
            return SemanticError(
                f"model {name} has no version {version}", hint=f"known: {', '.join(numbers)}"
            )
        names = dict.fromkeys(found.name for found in self.list())
        return SemanticError(f"there is no model {name}", hint=did_you_mean(name, names))

    def _exists(self, table: str) -> bool:
        """Whether the table is there. SourceError: a table of that name is, and it is not ours."""
        found = {row["column_name"] for row in self._rows(self._dialect.columns, self._source.home, table)}
        if found and found != set(_TABLES[table][0]):
            raise foreign(table)
        return bool(found)

    def _run(self, sql: str, *values: object) -> None:
        self._source.execute(sql, values)

    def _rows(self, query: str, *values: object) -> Rows:
        reader = self._source.execute(query, values)
        return reader.read_all().to_pylist() if reader is not None else []


def _version(row: dict[str, Any]) -> ModelVersion:
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
    )


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(CHUNK_BYTES):
        yield piece


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def foreign(table: str) -> SourceError:
    return SourceError(
        f"the table {table} is not the one that sqlflow-edl keeps its models in",
        hint="rename it; models are kept in a table of that name",
    )


def now() -> str:
    """The time as records keep it: UTC in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
