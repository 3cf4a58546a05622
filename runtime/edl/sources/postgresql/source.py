"""PostgreSQL as a data source, see `edl.sources.server`.

Tables that are named without a schema belong to the schema of the connection: `schema=` of the URL, or the first of the
user's search path. The registry of models uses it too. It does not change with `SET search_path`, because a job
commits its results over other connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from edl.data.displayed_rows import DisplayedRows, join_small_batches
from edl.data.names import join_quoted, quote_part
from edl.data.server_url import ServerURL
from edl.data.source import RowEstimate
from edl.errors import SourceError, did_you_mean
from edl.sources.cursors import RowConverter
from edl.sources.pinned_tables import PREFIX
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
from edl.sources.server import ServerSource
from edl.sources.words import not_a_query, strip_end

LOCK_MS = 200  # how long a question waits for a lock: the parser looks tables up


class PostgreSQLSource(ServerSource[PostgreSQLColumn, PostgreSQLConnection]):
    """`edl.data.source.Source` for PostgreSQL."""

    dialect = "postgres"
    errors = ERRORS
    rates = pinning.RATES
    impatience = f"SET lock_timeout = {LOCK_MS}"
    _results: PostgreSQLResults

    def __init__(self, url: ServerURL) -> None:
        check_options(url)
        super().__init__(url)
        self._url = with_password(self._url, self.connection)
        self._results = PostgreSQLResults(self)
        [(schema, self.temporary_tables)] = self.connection.fetch_all(queries.FACTS)
        self.schema_name: str = schema or "public"
        self.home = quote_part(self.schema_name) + "."
        self.home_kind = f"the schema {self.schema_name}"
        self._check_schema(dict(url.options).get("schema"))

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

    # Statements ------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> DisplayedRows | None:
        LEXICON.first_word(sql)
        result = self._run(sql, parameters)
        if not result.columns:
            self._unread = None
            return None
        columns = types.columns(result.columns, self.connection.extra_types)
        schema = pa.schema([(column.name, column.kind) for column in columns])
        batches = self._batches(result, lambda rows: types.displayed_batch(columns, rows))
        return DisplayedRows(schema, join_small_batches(batches, schema))

    def syntax_error(self, sql: str) -> SourceError | None:
        connection, user = self._second.get(), self.connection.driver.info
        if connection is None or user.parameter_status("standard_conforming_strings") == "off":
            return None
        return syntax_error(connection, sql)

    def tables(self) -> list[str]:
        return [name for (name,) in self.read_few_rows(queries.TABLES)]

    def databases(self) -> list[str]:
        """Return the schemas, which are what a name before the dot means."""
        return [name for (name,) in self.read_few_rows(queries.SCHEMAS)]

    def create(self, sql: str) -> int:
        """Run a `CREATE TABLE …`. Return the number of its rows. Raises DeniedError without the right."""
        connection = self.live()
        with self._errors(""), self._denials():
            return connection.run(sql)

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

    def _open(self) -> PostgreSQLConnection:
        return PostgreSQLConnection(self._url)

    def _close_if_lost(self, connection: PostgreSQLConnection) -> None:
        if not connection.in_transaction:
            try:
                connection.run("SELECT")
            except ERRORS:
                connection.close()

    def _stop(self, connection: PostgreSQLConnection) -> None:
        connection.cancel()

    def _pinning(self, columns: Sequence[PostgreSQLColumn], folder: Path) -> pinning.PostgreSQLPinning:
        return pinning.PostgreSQLPinning(self, self._url, columns, folder)

    def _can_make_tables(self) -> bool:
        return pinning.can_make_tables(self)

    def _row_tables(self) -> list[tuple[str, str]]:
        rows = self.look_up(queries.tables_of_ours, PREFIX)
        return [(join_quoted((schema, name)), comment) for schema, name, comment in rows]

    def _estimate(self, connection: PostgreSQLConnection, query: str) -> RowEstimate:
        return queries.estimate_rows(connection, query)

    def _check_rights(self, connection: PostgreSQLConnection, statements: Iterable[str]) -> None:
        check_rights(connection, statements)

    def _is_denied(self, error: Exception) -> bool:
        return state(error) in errors.DENIED

    def _columns(self, query: str) -> list[PostgreSQLColumn]:
        LEXICON.first_word(query)
        text = strip_end(query)
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

    def _row_converter(self, columns: Sequence[PostgreSQLColumn], schema: pa.Schema) -> RowConverter:
        return lambda rows: types.batch(columns, rows)

    def _check_schema(self, asked: str | None) -> None:
        if asked and asked != self.schema_name:
            hint = did_you_mean(asked, self.databases())
            self.close()
            raise SourceError(f"there is no schema {asked} that this user may use", hint=hint)

    def _translate(self, error: Exception, sql: str) -> SourceError:
        connection: PostgreSQLConnection = self.connection
        usable = connection.is_open and not connection.in_transaction
        return errors.translate_error(error, sql, (lambda: connection) if usable else None)
