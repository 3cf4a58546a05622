"""ClickHouse by its HTTP interface, with clickhouse-connect, and all rows in Arrow's format.

Requests have no session, so a statement never waits for another one with unread rows. `DESCRIBE` tells the types of a
query before it runs, and those that ClickHouse writes into Arrow as bare numbers or bytes are cast.
"""

from __future__ import annotations

import io
import logging
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from edl.data.arrow_types import rechunk_rows
from edl.data.server_url import ServerURL
from edl.data.source import UnreachableError
from edl.errors import SourceError
from edl.extensions.warehouses.source import Parts, WarehouseSource
from edl.extensions.warehouses.sql import CLICKHOUSE

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

UPLOADED = 1 << 18  # rows of one INSERT, each of which is a part of the table
LONGEST = 24 * 3600  # seconds that a statement may take

_ARROW = {"X-ClickHouse-Format": "ArrowStream"}
_SETTINGS = {
    "output_format_arrow_string_as_string": 1,
    "output_format_arrow_low_cardinality_as_dictionary": 0,
}
# types of columns -> what they are cast to
_CASTS = (
    (re.compile(r"\bDateTime(?:\((?P<zone>'[^']*')\))?(?![\w(])"), r"DateTime64(0, \g<zone>)"),
    (re.compile(r"\bEnum(?:8|16)\((?:'(?:[^'\\]|\\.)*'|[^')])*\)"), "String"),
    (re.compile(r"\b(?:FixedString\(\d+\)|(?:UUID|IPv4|IPv6|JSON)\b(?:\([^()]*\))?)"), "String"),
)
_UNUSABLE = re.compile(r"U?Int(?:128|256)|Interval\w+|Variant|Dynamic|AggregateFunction|Object|Point|Polygon")


class ClickHouseSource(WarehouseSource):
    """`edl.data.source.Source` for a database of ClickHouse."""

    label = "ClickHouse"
    extra = "clickhouse"
    dialect = "clickhouse"
    lexicon = CLICKHOUSE
    options = ("secure", "verify", "ca_cert")
    declared: ClassVar = {
        "BOOLEAN": "Nullable(Bool)",
        "DATE": "Nullable(Date32)",
        "TIME": "Nullable(Time64(6))",
        "TIMESTAMP": "Nullable(DateTime64(6, 'UTC'))",
        "TIMESTAMPTZ": "Nullable(DateTime64(6, 'UTC'))",
        "DECIMAL(20, 0)": "Nullable(UInt64)",
        "[]": "Array({})",
    }
    patterns = (
        re.compile(r"(?P<message>Unknown table expression identifier '(?P<table>[^']+)')"),
        re.compile(r"(?P<message>Table (?P<table>\S+) does not exist)"),
        re.compile(r"(?P<message>Database (?P<name>\S+) does not exist)"),
        re.compile(r"(?P<message>Unknown expression(?: or function)? identifier `(?P<column>[^`]+)`)"),
        re.compile(
            r"(?P<message>Function with name `(?P<name>[^`]+)` does not exist)"
            r"(?:. Maybe you meant: \['(?P<near>[^']+)')?"
        ),
        re.compile(r"Syntax error: .*?\(line (?P<line>\d+), col (?P<at>\d+)\)", re.DOTALL),
        re.compile(r"(?P<message>.*?)(?::? In scope .*)? \([A-Z_]+\)(?: \(version .*)?$", re.DOTALL),
    )
    tables_query = (
        "SELECT if(database = currentDatabase(), '', database), name FROM system.tables"
        " WHERE lower(database) NOT IN ('system', 'information_schema') AND NOT is_temporary ORDER BY 1, 2"
    )
    databases_query = (
        "SELECT name FROM system.databases"
        " WHERE lower(name) NOT IN ('system', 'information_schema') ORDER BY 1"
    )

    def __init__(self, url: str, client: Client, driver_errors: tuple[type[Exception], ...]) -> None:
        super().__init__(url)
        self.driver_errors = driver_errors
        self._client = client
        self._running = ""  # id of the statement that is being read
        self._stream: Any = None  # response of urllib3

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> ClickHouseSource:
        """Open the database. `create` has no effect: CREATE DATABASE makes one."""
        options: dict[str, Any] = cls._check_options(url)
        try:
            import clickhouse_connect
            import urllib3.exceptions
            from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError
        except ImportError:
            raise cls._needs("clickhouse-connect") from None
        logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())  # errors are raised, too
        account = url.with_password()
        try:
            client = clickhouse_connect.get_client(
                host=url.host,
                port=url.port,
                username=url.user or "default",
                password=account.password,
                database=url.path or "default",
                interface="https" if options.pop("secure", "false").lower() in ("true", "1") else "http",
                client_name="sqlflow-edl",
                autogenerate_session_id=False,
                send_receive_timeout=LONGEST,
                **options,
            )
        except OperationalError as error:
            reason = str(error.__cause__ or error).rpartition(": ")[2].rstrip('")')
            raise UnreachableError(
                f"ClickHouse at {url.host}:{url.port} cannot be reached: {reason}"
            ) from None
        except ClickHouseError as error:
            raise SourceError(re.sub(r"\. \([A-Z_]+\).*", "", _server_message(str(error)))) from None
        errors = (ClickHouseError, urllib3.exceptions.HTTPError, pa.ArrowInvalid, OSError)
        return cls(str(url), client, errors)

    # Statements ------------------------------------------------------------------------------------------

    def rows(self, sql: str) -> pa.RecordBatchReader | None:
        self._end_stream()
        self._running = secrets.token_hex(16)
        settings: dict[str, Any] = {**_SETTINGS, "query_id": self._running}
        self._stream = self._client.raw_stream(sql, settings=settings, transport_settings=_ARROW)
        self._stream.auto_close = False  # or the end of its bytes closes it
        body = io.BufferedReader(self._stream, 1 << 20)
        if not body.peek(1):
            self._end_stream()
            return None
        reader = pa.ipc.open_stream(body)
        return pa.RecordBatchReader.from_batches(reader.schema, map(_check_batch, reader))

    def append(self, parts: Parts, batches: pa.RecordBatchReader) -> None:
        self._end_stream()
        for batch in rechunk_rows(batches, batches.schema, UPLOADED):
            self._client.insert_arrow(self.texts.name(*parts), pa.Table.from_batches([batch]))

    def interrupt(self) -> None:
        if running := self._running:
            with suppress(*self.driver_errors):
                self._client.command(f"KILL QUERY WHERE query_id = '{running}'")

    def close(self) -> None:
        self._end_stream()
        self._client.close()

    def _end_stream(self) -> None:
        self._running = ""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    # Types -----------------------------------------------------------------------------------------------

    def column_types(self, table: str) -> list[tuple[str, str]]:
        return self._describe_query(self.lexicon.one_query(f"SELECT * FROM {table}"))

    def plain(self, query: str) -> str:
        columns, cast = [], False
        for name, kind in self._describe_query(query):
            if match := _UNUSABLE.search(kind):
                raise SourceError(
                    f"column {name} is of the type {match[0]}, which cannot be used",
                    hint=f"cast it in the SELECT, for example toString({name})",
                )
            usable = kind
            for pattern, into in _CASTS:
                usable = pattern.sub(into, usable).replace(", )", ")")
            cast = cast or usable != kind
            quoted = self.texts.name(name)
            columns.append(
                f"CAST({quoted}, {self.texts.text(usable)}) AS {quoted}" if usable != kind else quoted
            )
        return f"SELECT {', '.join(columns)} FROM (\n{query}\n)" if cast else query

    def _describe_query(self, query: str) -> list[tuple[str, str]]:
        """Return the columns of a query, and their types. Raises SourceError for a text that is no query."""
        described = self._run(f"DESCRIBE TABLE (\n{query}\n)", query).read_all()
        return list(zip(described["name"].to_pylist(), described["type"].to_pylist(), strict=True))

    # Tables ----------------------------------------------------------------------------------------------

    def place(self, target: str) -> Parts:
        if len(parts := super().place(target)) > 2:
            raise SourceError(f"the name {target} has {len(parts)} parts", hint="write it as database.table")
        return parts

    def existing_query(self, parts: Parts) -> str:
        database = self.texts.text(parts[0]) if len(parts) == 2 else "currentDatabase()"
        name = self.texts.text(parts[-1])
        return f"SELECT engine, comment FROM system.tables WHERE database = {database} AND name = {name}"

    def create(self, parts: Parts, columns: str, mark: str) -> Sequence[str]:
        table = f"CREATE TABLE {self.texts.name(*parts)} ({columns})"
        return [f"{table} ENGINE = MergeTree ORDER BY tuple() COMMENT {self.texts.text(mark)}"]

    def rename(self, table: Parts, name: Parts) -> str:
        return f"RENAME TABLE {self.texts.name(*table)} TO {self.texts.name(*name)}"

    def swap(self, new: Parts, target: Parts, old: Parts, *, exists: bool) -> Sequence[str]:
        """Return one statement, which other readers see done or not, in a database of the engine Atomic."""
        exchange = f"EXCHANGE TABLES {self.texts.name(*new)} AND {self.texts.name(*target)}"
        return [exchange if exists else self.rename(new, target)]

    # Errors ----------------------------------------------------------------------------------------------

    def translate(self, error: Exception, sent: str, query: str) -> SourceError:
        if "QUERY_WAS_CANCELLED" in str(error):
            return SourceError("the statement was interrupted")
        if isinstance(error, (pa.ArrowInvalid, OSError)):
            return SourceError(f"the rows of ClickHouse ended early: {str(error)[:200]}")
        return super().translate(error, sent, query)

    def message(self, error: Exception) -> str:
        return _server_message(str(error))


def _check_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch. Raises SourceError for bytes in a String that are no text: ClickHouse has one type for both."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        name = batch.schema.names[int((re.search(r"column (\d+)", str(error)) or "0")[1])]
        raise SourceError(
            f"column {name} holds bytes that are no text in UTF-8", hint=f"write hex({name}) in the SELECT"
        ) from None
    return batch


def _server_message(message: str) -> str:
    """Return the server's part of a message of the driver."""
    return re.sub(r" \(for url \S+\)$", "", message.rpartition("DB::Exception: ")[2])
