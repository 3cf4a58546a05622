"""Result tables in MySQL, see `edl.sources.staging`.

A table's comment holds the mark and the job; a rename keeps it. The number of a staged row is in an invisible key
column, so that InnoDB keeps the rows in order and `SELECT *` does not show it.

Statements that define tables commit implicitly in MySQL, so a commit can stop between its steps. RENAME TABLE is one
step: it replaces the target by the staging table and moves the target aside, where it is checked once more before it
is dropped. A repeated commit recognises by the job in the mark that this was done. It waits for the end of the one
before, which the server may still carry out after the connection was lost.

Before that, columns of short texts become VARCHAR. If a commit stopped between the two and a task is run again, they
become LONGTEXT again.

A target is a name of one or two parts: table, or database.table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from edl.data.names import PROBE, quote_part, split_name
from edl.data.source import ConflictError
from edl.errors import SourceError
from edl.sources.mysql import queries, upload
from edl.sources.mysql.connection import literal
from edl.sources.numbered import NumberColumnStaging
from edl.sources.staging import MARK, STAGE, Abandoned, ExistingTable, TablePlace

if TYPE_CHECKING:
    from edl.sources.mysql.source import MySQLSource

_ASIDE = "sqlflow_edl_old_"
_JOB = f"{MARK}, job "
_ENGINE = "InnoDB"
_LOCK_SECS = 20  # for another commit of the same rows to end, twice


class MySQLResults(NumberColumnStaging):
    """Results of one connection."""

    quote = "`"
    options = f" ENGINE = {_ENGINE} DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin"
    _source: MySQLSource

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        super().check_may_write(target, append=append)
        self._source.check_may_replace(self._place(target).home + quote_part(PROBE, "`"))

    def commit(self, target: str, job: str, tasks: int, *, append: bool = False) -> int:
        lock = literal(self._place(target).stage_name(job), self._source.live())
        if not self._locks(lock):
            raise ConflictError(f"another connection stores the rows of job {job}", hint="try again")
        try:
            return super().commit(target, job, tasks, append=append)
        finally:
            with suppress(SourceError):  # the lock ends with its connection, too
                self._source.count(f"SELECT COALESCE(RELEASE_LOCK({lock}), 0)")

    def _locks(self, lock: str) -> bool:
        """Return True if this connection has the lock. One that has it and is idle lost its client, and is ended."""
        taking = f"SELECT COALESCE(GET_LOCK({lock}, {_LOCK_SECS}), 0)"
        if self._source.count(taking):
            return True
        idle = self._source.read_few_rows(
            "SELECT id FROM information_schema.processlist"
            f" WHERE id = IS_USED_LOCK({lock}) AND command = 'Sleep'"
        )
        for (number,) in idle:
            with suppress(SourceError):  # it has ended
                self._source.execute(f"KILL {int(number)}")
        return bool(idle and self._source.count(taking))

    def _place(self, target: str) -> TablePlace:
        parts = split_name(target)
        if len(parts) > 2:
            raise SourceError(f"the name {target} has {len(parts)} parts", hint="write it as database.table")
        database, table = (self._source.database, *parts) if len(parts) == 1 else parts
        for part in (database, table):
            if len(part) > 64 or part != part.rstrip():
                raise SourceError(
                    f"{part} cannot be a name in MySQL", hint="write one of at most 64 characters"
                )
        return TablePlace((database, table), quote_part(database, "`") + ".", "`")

    def _existing(self, place: TablePlace, target: str) -> Iterator[ExistingTable]:
        row = self._source.look_up(queries.table, *place.parts)
        if row is not None:
            yield ExistingTable(row[0] == "VIEW", row[1] if row[0] == "BASE TABLE" else "")

    def _make_stage(self, place: TablePlace, job: str, schema: pa.Schema) -> None:
        database = place.parts[0]
        if database != self._source.database:
            self._source.execute(f"CREATE DATABASE IF NOT EXISTS {quote_part(database, '`')}")
        key = f"{self._number(schema.names)} BIGINT NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY"
        columns = [f"{quote_part(field.name, '`')} {upload.declare_type(field)}" for field in schema]
        mark = literal(f"{_JOB}{job}", self._source.live())
        self._source.execute(
            f"CREATE TABLE IF NOT EXISTS {place.stage_table(job)} ({', '.join([key, *columns])})"
            f" ENGINE = {_ENGINE} DEFAULT CHARSET = utf8mb4 COLLATE = {self._source.collation()} COMMENT = {mark}"
        )
        long = set(self._long_texts(place, job))
        texts = [field for field in schema if pa.types.is_string(field.type) and field.name not in long]
        self._alter(place, job, {field.name: upload.declare_type(field) for field in texts})

    def _swap(self, place: TablePlace, job: str, tasks: int) -> int:
        count = f"SELECT COUNT(*) FROM {place.name}"
        row = self._source.look_up(queries.table, *place.parts)
        staged = self._source.look_up(queries.table, place.parts[0], place.stage_name(job))
        if staged is None and row is not None and row[1] == f"{_JOB}{job}":
            return self._source.count(count)  # a previous attempt stopped after its rename
        self._check(place, ".".join(place.parts), job)
        stage = place.stage_table(job)
        self._drop_beyond(place, job, tasks)
        texts = self._long_texts(place, job)
        lengths = [f"COALESCE(MAX(CHAR_LENGTH({quote_part(name, '`')})), 0)" for name in texts]
        [(rows, *longest)] = self._source.read_few_rows(
            f"SELECT {', '.join(['COUNT(*)', *lengths])} FROM {stage}"
        )
        if int(rows) == self._books(place, job).complete(tasks):
            self._alter(place, job, upload.narrow_types(dict(zip(texts, map(int, longest), strict=True))))
            self._rename(place, job, stage, replaces=row is not None)
        return int(rows)

    def _check_appended(self, place: TablePlace, target: str, appended: pa.Schema) -> list[str]:
        row = self._source.look_up(queries.table, *place.parts)
        if row is not None and row[2].casefold() != _ENGINE.casefold():
            raise SourceError(
                f"rows cannot be added to {target} all or none: it is a table of {row[2]}",
                hint=f"ALTER TABLE {target} ENGINE = {_ENGINE} gives it transactions",
            )
        return super()._check_appended(place, target, appended)

    def _add(self, place: TablePlace, target: str, job: str, tasks: int) -> int:
        """Add the rows in strict mode. Without it, the server would cut values to fit the columns."""
        mode = literal(self._source.read_few_rows("SELECT @@sql_mode")[0][0].decode(), self._source.live())
        self._source.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')")
        try:
            return super()._add(place, target, job, tasks)
        finally:
            with suppress(SourceError):  # else the connection is lost
                self._source.execute(f"SET SESSION sql_mode = {mode}")

    def _rename(self, place: TablePlace, job: str, stage: str, *, replaces: bool) -> None:
        if not replaces:
            self._source.execute(f"RENAME TABLE {stage} TO {place.name}")
            return
        aside = TablePlace(
            (place.parts[0], _ASIDE + place.stage_name(job).removeprefix(STAGE)), place.home, "`"
        )
        self._source.execute(f"RENAME TABLE {place.name} TO {aside.name}, {stage} TO {place.name}")
        try:
            # Another user may have created a table there just before.
            self._check(aside, ".".join(place.parts), job)
        except SourceError:
            self._source.execute(f"RENAME TABLE {place.name} TO {stage}, {aside.name} TO {place.name}")
            raise
        self._source.execute(f"DROP TABLE {aside.name}")

    def _stages(self) -> list[Abandoned]:
        rows = self._source.look_up(queries.tables_of_ours, self._source.database, STAGE)
        return [Abandoned(self._source.home, name, comment.removeprefix(_JOB)) for name, comment in rows]

    def _exists(self, home: str, table: str) -> bool:
        database = home[1:-2].replace("``", "`")
        return self._source.look_up(queries.table, database, table) is not None

    def _columns(self, place: TablePlace, job: str) -> list[str]:
        """Return the columns of the staged rows."""
        return self._source.look_up(queries.columns_in_order, place.parts[0], place.stage_name(job))

    def _required_columns(self, place: TablePlace) -> list[str]:
        return self._source.look_up(queries.needed_columns, *place.parts)

    def _long_texts(self, place: TablePlace, job: str) -> list[str]:
        """Return the LONGTEXT columns of the staged rows."""
        return self._source.look_up(queries.long_texts, place.parts[0], place.stage_name(job))

    def _alter(self, place: TablePlace, job: str, types: Mapping[str, str]) -> None:
        """Change the types of columns of the staged rows."""
        if types:
            changes = ", ".join(f"MODIFY {quote_part(name, '`')} {kind}" for name, kind in types.items())
            self._source.alter(f"ALTER TABLE {place.stage_table(job)} {changes}")
