"""Result tables in PostgreSQL, see `edl.sources.staging`.

The comment of a result table holds the mark and the job; the comment of a staging table holds its job. Statements that
define tables are part of a transaction here, so that a commit is one step. A result with the columns of the previous
one takes its place in the same table, which keeps rights, indexes and the views over it.

A target is a name of one to three parts: table, schema.table, database.schema.table. Parts without quotation marks
are read as in a query, in small letters. A schema that does not exist is created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from edl.data.names import join_quoted, quote_part, split_name
from edl.data.source import MissingRightError
from edl.errors import SourceError
from edl.sources.numbered import TASK_ROWS, NumberColumnStaging
from edl.sources.postgresql import queries, upload
from edl.sources.staging import MARK, STAGE, Abandoned, ExistingTable, TablePlace

if TYPE_CHECKING:
    from edl.sources.postgresql.source import PostgreSQLSource

_JOB = f"{MARK}, job "
_TABLES = ("r", "p")


class PostgreSQLResults(NumberColumnStaging):
    """Results of one connection."""

    _source: PostgreSQLSource

    def _place(self, target: str) -> TablePlace:
        parts = split_name(_in_small_letters(target))
        if len(parts) > 3:
            raise SourceError(f"the name {target} has {len(parts)} parts", hint="write it as schema.table")
        if len(parts) == 3 and parts[0] != self._source.database:
            raise SourceError(
                f"{parts[0]} is not the database of this connection, {self._source.database}",
                hint=f"write {parts[1]}.{parts[2]}, or connect to {parts[0]}",
            )
        upload.check_names(parts)
        schema, table = (self._source.schema_name, *parts)[-2:]
        return TablePlace((schema, table), quote_part(schema) + ".")

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        super().check_may_write(target, append=append)
        owner = self._source.look_up(queries.other_owner, *self._place(target).parts)
        if owner and not append:
            raise MissingRightError(
                f"permission denied: the table {target} belongs to {owner}, who alone may replace it",
                hint=f"write the results into another table, or let {owner} drop this one",
            )

    def _statements(self, place: TablePlace, *, append: bool) -> list[str]:
        first, *others = super()._statements(place, append=append)
        if not self._source.look_up(queries.has_schema, place.parts[0]):
            first = f"CREATE SCHEMA {quote_part(place.parts[0])}; {first}"
        return [first, *others]

    def _existing(self, place: TablePlace, target: str) -> Iterator[ExistingTable]:
        schema, table = place.parts
        hidden = len(split_name(target)) == 1  # a temporary table would hide it from queries
        for kind, comment, temporary in self._source.look_up(
            queries.list_relations, schema, table, hidden=hidden
        ):
            yield ExistingTable(
                kind in ("v", "m"), comment if kind in _TABLES else "", is_temporary=temporary
            )

    def _make_stage(self, place: TablePlace, job: str, schema: pa.Schema) -> None:
        home = place.parts[0]
        if not self._source.look_up(queries.has_schema, home):
            self._source.execute(f"CREATE SCHEMA IF NOT EXISTS {quote_part(home)}")
        stage = place.stage_table(job)
        columns = [f"{self._number(schema.names)} bigint", *upload.definitions(schema)]
        self._source.execute(f"CREATE UNLOGGED TABLE IF NOT EXISTS {stage} ({', '.join(columns)})")
        self._source.execute(f"COMMENT ON TABLE {stage} IS {text(job)}")

    def _swap(self, place: TablePlace, job: str, tasks: int) -> int:
        stage = place.stage_table(job)
        number, *columns = self._source.look_up(
            queries.columns_in_order, place.parts[0], place.stage_name(job)
        )
        names = ", ".join(quote_part(name) for name, _ in columns)
        key = quote_part(number[0])
        rows = f"SELECT {names} FROM {stage} WHERE {key} <= {tasks * TASK_ROWS} ORDER BY {key}"
        present = self._source.look_up(queries.columns_in_order, *place.parts)
        if present:
            self._source.execute(f"LOCK TABLE {place.name} IN ACCESS EXCLUSIVE MODE")
        self._check(place, join_quoted(place.parts), job)  # another user may have made it just before
        if present == columns:
            self._source.execute(f"TRUNCATE {place.name}")
            self._source.execute(f"INSERT INTO {place.name} ({names}) {rows}")
        else:
            self._source.execute(f"DROP TABLE IF EXISTS {place.name}")
            self._source.execute(f"CREATE TABLE {place.name} AS {rows}")
        self._source.execute(f"COMMENT ON TABLE {place.name} IS {text(f'{_JOB}{job}')}")
        self._source.execute(f"ANALYZE {place.name}")  # otherwise plans are bad until the server's next round
        return self._source.count(f"SELECT count(*) FROM {place.name}")

    def _stages(self) -> list[Abandoned]:
        rows = self._source.look_up(queries.tables_of_ours, STAGE)
        return [Abandoned(quote_part(schema) + ".", name, job) for schema, name, job in rows]

    def _exists(self, home: str, table: str) -> bool:
        (schema,) = split_name(home[:-1])
        return bool(self._source.look_up(queries.list_relations, schema, table, hidden=False))

    def _columns(self, place: TablePlace, job: str) -> list[str]:
        rows = self._source.look_up(queries.columns_in_order, place.parts[0], place.stage_name(job))
        return [name for name, _ in rows[1:]]

    def _required_columns(self, place: TablePlace) -> list[str]:
        return self._source.look_up(queries.needed_columns, *place.parts)


def text(value: str) -> str:
    """Return a literal: statements that define tables take no parameters."""
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'" if "\\" in value else f"'{escaped}'"


def _in_small_letters(name: str) -> str:
    """Return the name with the parts in small letters that have no quotation marks, as the server reads them."""
    pieces = name.split('"')
    return '"'.join(piece if at % 2 else _lower_piece(piece) for at, piece in enumerate(pieces))


def _lower_piece(piece: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in piece)
