"""PostgreSQL as a data source.

The user's statements, and internal ones of the same transaction, run on one connection, so that a query sees its
temporary tables and settings. After a long idle time the connection is checked before use, and replaced if it is lost.

Pinned rows stay in the database as a private table, see `edl.sources.postgresql.pinning`. For users without the right
to create tables they are a file, as with an embedded database.

Tables that are named without a schema belong to the schema of the connection: `schema=` of the URL, or the first of the
user's search path. The registry of models uses it too. It does not change with `SET search_path`, because a job
commits its results over other connections.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from edl.data.displayed_rows import DisplayedRows, join_small_batches
from edl.data.names import quote_part
from edl.data.server_url import ServerURL
from edl.data.source import Pinned, PinningRates, RowEstimate
from edl.errors import SourceError, did_you_mean
from edl.sources import pinned_tables
from edl.sources.cursors import CursorSource
from edl.sources.pinned_tables import PREFIX, DeniedError
from edl.sources.pinning_cost import IN_FILE
from edl.sources.postgresql import errors, pinning, queries, types, upload
from edl.sources.postgresql.connection import (
    ERRORS,
    LEXICON,
    PostgreSQLConnection,
    check_options,
    state,
    with_password,
)
from edl.sources.postgresql.results import PostgreSQLResults
from edl.sources.postgresql.rights import check_rights
from edl.sources.postgresql.syntax import syntax_error
from edl.sources.postgresql.types import PostgreSQLColumn
from edl.sources.second_connection import SecondConnection
from edl.sources.words import not_a_query
from edl.spec import Split

IDLE_SECS = 30.0  # idle time after which a connection is checked before use
LOCK_MS = 200  # how long a question waits for a lock: the parser looks tables up

P = ParamSpec("P")
R = TypeVar("R")


class PostgreSQLSource(CursorSource[PostgreSQLColumn]):
    """`edl.data.source.Source` for PostgreSQL."""

    dialect = "postgres"
    errors = ERRORS
    finds_syntax_errors = True
    _results: PostgreSQLResults

    def __init__(self, url: ServerURL) -> None:
        check_options(url)
        connection = PostgreSQLConnection(url.with_password())
        super().__init__(connection, str(url))
        self._url = with_password(url.with_password(), connection)
        self.database = url.path
        self._used = time.monotonic()
        self._results = PostgreSQLResults(self)
        self._second = SecondConnection(self._connect_again, lambda second: second.is_open)
        self._pins_tables = ("pin", "file") not in url.options
        [(schema, self.temporary_tables)] = connection.fetch_all(queries.FACTS)
        self.schema_name: str = schema or "public"
        self.home = quote_part(self.schema_name) + "."
        self._check_schema(dict(url.options).get("schema"))

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> PostgreSQLSource:
        """Open the source. `create` has no effect: administrators create databases of a server."""
        return cls(url)

    def interrupt(self) -> None:
        self.connection.cancel()

    # Reading ---------------------------------------------------------------------------------------------

    def schema(self, query: str) -> pa.Schema:
        return types.describe_columns(self._columns(query))

    def column_types(self, table: str) -> list[tuple[str, str]]:
        query = f"SELECT * FROM {table}"
        with self._errors(query):
            described = self.live().describe(query)
        names = self.look_up(queries.types_of, [(column.oid, column.modifier) for column in described])
        return [(column.name, kind) for column, kind in zip(described, names, strict=True)]

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        columns = self._columns(query)
        schema = self._schema(columns)
        if self._pins_tables and not self.live().in_transaction:  # which other connections would not see
            steps = pinning.PostgreSQLPinning(self, self._url, columns, schema, folder)
            try:
                return steps.pin(_one(query), seed=seed, shuffle=shuffle, split=split)
            except DeniedError:
                self._pins_tables = False
        return super().pin(query, folder, seed=seed, shuffle=shuffle, split=split)

    def unpin(self, pinned: Pinned, folder: Path) -> None:
        if pinned.table is None:
            super().unpin(pinned, folder)
        else:
            self.execute(f"DROP TABLE IF EXISTS {pinned.table.name}")

    def how_rows_are_kept(self) -> str:
        if self._pins_tables and pinning.may_make_tables(self):
            return ""
        asked = ("pin", "file") in self._url.options
        why = (
            "the URL says so" if asked else f"this user cannot create tables in the schema {self.schema_name}"
        )
        return f"all rows are copied into the job's folder once, over one connection: {why}"

    def estimate_rows(self, query: str) -> RowEstimate | None:
        # ERRORS: of a table or a setting that only the user's session has
        return self._second.ask(lambda second: queries.estimate_rows(second, _one(query)), ERRORS)

    def pinning_rates(self) -> PinningRates:
        return IN_FILE if self.how_rows_are_kept() else pinning.RATES

    def unpin_abandoned(self) -> int:
        rows = self.look_up(queries.tables_of_ours, PREFIX)
        named = [(f"{quote_part(schema)}.{quote_part(name)}", comment) for schema, name, comment in rows]
        return pinned_tables.drop_abandoned(self, named)

    # Statements ------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> DisplayedRows | None:
        LEXICON.first_word(sql)
        result = self._run(sql, parameters)
        if not result.columns:
            self._unread = None
            return None
        columns = types.columns(result.columns, self.connection.extra_types)
        schema = pa.schema([(column.name, column.kind) for column in columns])
        batches = self._batches_of(result, lambda rows: types.displayed_batch(columns, rows))
        return DisplayedRows(schema, join_small_batches(batches, schema))

    @property
    def has_open_transaction(self) -> bool:
        return bool(self.connection.in_transaction)

    def check_rights(self, statements: Sequence[str]) -> None:
        self._second.ask(lambda second: check_rights(second, statements))

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        self._results.check_may_write(target, append=append)

    def syntax_error(self, sql: str) -> SourceError | None:
        connection, user = self._second.get(), self.connection.driver.info
        if connection is None or user.parameter_status("standard_conforming_strings") == "off":
            return None
        return syntax_error(connection, sql)

    def tables(self) -> list[str]:
        return [name for (name,) in self.look_up(PostgreSQLConnection.fetch_all, queries.TABLES)]

    def databases(self) -> list[str]:
        """Return the schemas, which are what a name before the dot means."""
        return [name for (name,) in self.look_up(PostgreSQLConnection.fetch_all, queries.SCHEMAS)]

    def look_up(
        self, query: Callable[Concatenate[PostgreSQLConnection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run a function of `postgresql.queries`. Raises ConflictError if the connection is lost meanwhile."""
        connection = self.live()
        with self._errors(""):
            return query(connection, *args, **kwargs)

    def count(self, query: str) -> int:
        """Return the number that an internal query yields."""
        return int(self.look_up(PostgreSQLConnection.fetch_all, query)[0][0])

    def create(self, sql: str) -> int:
        """Run a `CREATE TABLE …`. Return the number of its rows. Raises DeniedError without the right."""
        connection = self.live()
        with self._errors(""):
            try:
                return connection.run(sql)
            except ERRORS as error:
                if state(error) in errors.DENIED:
                    raise DeniedError(str(error).splitlines()[0]) from None
                raise

    # Writing ---------------------------------------------------------------------------------------------

    def append(self, table: str, names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> None:
        """Append batches with the columns `names`. Raises SourceError if a value does not fit its column."""
        connection = self.live()
        with self._errors(""):
            upload.write(connection, table, names, batches)

    def stage_temporary(self, name: str, batches: pa.RecordBatchReader) -> None:
        self.execute(
            f"CREATE TEMPORARY TABLE {quote_part(name)} ({', '.join(upload.definitions(batches.schema))})"
        )
        self.append(quote_part(name), batches.schema.names, batches)

    def drop_temporary(self, name: str) -> None:
        self.execute(f"DROP TABLE IF EXISTS pg_temp.{quote_part(name)}")

    # Inside ----------------------------------------------------------------------------------------------

    def live(self) -> PostgreSQLConnection:
        """Return the connection with no unfinished result, replaced if it was lost outside of a transaction."""
        self._end_result()
        connection: PostgreSQLConnection = self.connection
        if self.in_transaction:
            return connection
        if connection.is_open and not connection.in_transaction and time.monotonic() - self._used > IDLE_SECS:
            with self._closing_lost(connection):
                connection.run("SELECT")
        if not connection.is_open:
            connection.open()
        self._used = time.monotonic()
        return connection

    def _columns(self, query: str) -> list[PostgreSQLColumn]:
        LEXICON.first_word(query)
        text = _one(query)
        connection = self.live()
        with self._errors(query):
            described = connection.describe(text)
        if not described:
            raise not_a_query()
        try:
            described = connection.describe(queries.wrap_query(text))
        except ERRORS as error:
            raise errors.not_in_parentheses(error, text) from None
        with self._errors(""):
            connection.learn_types(described)
        return types.columns(described, connection.extra_types)

    def _schema(self, columns: Sequence[PostgreSQLColumn]) -> pa.Schema:
        return types.schema(columns)

    def _batch(
        self, columns: Sequence[PostgreSQLColumn], rows: Sequence[Sequence[Any]], schema: pa.Schema
    ) -> pa.RecordBatch:
        return types.batch(columns, rows)

    def _connect_again(self) -> PostgreSQLConnection:
        """Return a connection that waits for no lock: the user's own transaction may hold one."""
        connection = PostgreSQLConnection(self._url)
        with suppress(*ERRORS):  # then it waits as long as others
            connection.run(f"SET lock_timeout = {LOCK_MS}")
        return connection

    def close(self) -> None:
        self._second.close()
        super().close()

    def _check_schema(self, asked: str | None) -> None:
        if asked and asked != self.schema_name:
            hint = did_you_mean(asked, self.databases())
            self.close()
            raise SourceError(f"there is no schema {asked} that this user may use", hint=hint)

    def _run(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        self.live()
        return super()._run(sql, parameters)

    def _begin(self) -> None:
        self._check_no_transaction()
        super()._begin()

    def _check_no_transaction(self) -> None:
        """Raise SourceError if the user has begun a transaction: our statements would commit it."""
        if self.live().in_transaction and not self.in_transaction:
            raise SourceError(
                "a transaction is open on this connection",
                hint="end the open transaction with COMMIT or ROLLBACK",
            )

    def _translate(self, error: Exception, sql: str) -> SourceError:
        connection: PostgreSQLConnection = self.connection
        usable = connection.is_open and not connection.in_transaction
        return errors.translate_error(error, sql, (lambda: connection) if usable else None)

    @contextmanager
    def _closing_lost(self, connection: PostgreSQLConnection) -> Iterator[None]:
        try:
            yield
        except ERRORS:
            connection.close()


def _one(query: str) -> str:
    """Return the query in a form allowed in parentheses."""
    return query.rstrip().rstrip(";")
