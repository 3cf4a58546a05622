"""Apache Hive, and Spark's Thrift server, by the protocol of HiveServer2, with impyla.

impyla opens a session for each cursor, so all statements go through one cursor. A statement is polled, so that another
thread can stop it. The types are Hive's; a TIMESTAMP of Spark is read in UTC.

The error messages of Spark were seen, the error messages of Hive never.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from edl.data.arrow_types import rechunk_rows
from edl.data.server_url import ServerURL
from edl.data.source import UnreachableError
from edl.errors import SourceError
from edl.extensions.warehouses.drivers import DBAPISource
from edl.extensions.warehouses.source import Parts
from edl.extensions.warehouses.sql import HIVE
from edl.sources.cursors import FETCH_ROWS
from edl.sources.staging import ExistingTable
from edl.sources.staging_tables import few_rows

INSERTED = 10_000  # rows of one INSERT, which takes seconds however few they are

_MARK = "sqlflow_edl"  # property of a table: the job that made it
_POLL_SECS = (0.005, 0.5)  # first and longest wait for a statement
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "hive.resultset.use.unique.column.names": "false",  # or SELECT * names columns table.column
}
_NO_ROWS = ["Result"]  # columns that Spark gives a statement that has none
_HAVE_ROWS = {
    "SELECT",
    "WITH",
    "FROM",
    "SHOW",
    "DESCRIBE",
    "DESC",
    "EXPLAIN",
    "VALUES",
    "TABLE",
    "MAP",
    "SET",
    "(",
}
_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "BINARY": pa.binary(),
    "NULL": pa.null(),
}


class HiveSource(DBAPISource):
    """`edl.data.source.Source` for a database of Hive."""

    label = "Hive"
    extra = "hive"
    dialect = "hive"
    quote = "`"
    lexicon = HIVE
    options = ("auth", "secure", "ca_cert", "kerberos_service", "http_path")
    declared: ClassVar = {"TIME": "STRING", "TIMESTAMPTZ": "TIMESTAMP"}
    patterns = (
        # Spark
        re.compile(r"(?P<message>The table or view (?P<table>\S+) cannot be found)"),
        re.compile(r"(?P<message>A column\b.*? with name (?P<column>`.+?`) cannot be resolved)"),
        re.compile(r"(?P<message>Cannot resolve routine (?P<name>`.+?`))"),
        re.compile(r"\[PARSE_SYNTAX_ERROR\].*?\(line (?P<line>\d+), pos (?P<at>\d+)\)", re.DOTALL),
        re.compile(
            r"Exception: \s*\[[A-Z_.]+\] (?P<message>.*?)(?: SQLSTATE: \w+)?[;.]?"
            r"(?: \(?line (?P<line>\d+),? pos (?P<at>\d+)\)?|\n|$)",
            re.DOTALL,
        ),
        # Hive
        re.compile(r"Line \d+:\d+ (?P<message>Table not found '?(?P<table>[^\s']+)'?)"),
        re.compile(
            r"Line \d+:\d+ (?P<message>Invalid (?:table alias or )?column reference '?(?P<column>[^\s':]+)'?)"
        ),
        re.compile(r"Line \d+:\d+ (?P<message>Invalid function '?(?P<name>[^\s':]+)'?)"),
        re.compile(r"ParseException line (?P<line>\d+):(?P<at>\d+) "),
    )
    tables_query = "SHOW TABLES"
    databases_query = "SHOW DATABASES"

    def __init__(self, url: str, connection: Any, cursor: Any, errors: tuple[type[Exception], ...]) -> None:
        super().__init__(url, connection)
        self.driver_errors = errors
        self._cursor = cursor
        self._stopped = threading.Event()

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> HiveSource:
        """Open the database. `create` has no effect: CREATE DATABASE makes one."""
        options = cls._check_options(url)
        try:
            import impala.dbapi
            from impala.error import Error
            from thrift.Thrift import TException
        except ImportError:
            raise cls._needs("impyla") from None
        for name in ("impala", "thrift"):
            logging.getLogger(name).addHandler(logging.NullHandler())  # errors are raised, too
        secure = options.get("secure", "false").lower() in ("true", "1")
        http = (
            {"use_http_transport": True, "http_path": options["http_path"]} if "http_path" in options else {}
        )
        errors = (Error, TException, OSError)
        try:
            connection = impala.dbapi.connect(
                host=url.host.strip("[]"),
                port=url.port,
                user=url.user or "anonymous",
                password=url.with_password().password or "anonymous",
                auth_mechanism=options.get("auth", "PLAIN").upper(),
                use_ssl=secure or "ca_cert" in options,
                ca_cert=options.get("ca_cert"),
                verify_cert=True,
                kerberos_service_name=options.get("kerberos_service", "hive"),
                **http,
            )
            cursor = connection.cursor(user=url.user or "anonymous", configuration=_SETTINGS)
        except errors as error:
            place = f"Hive at {url.host}:{url.port}"
            raise UnreachableError(f"{place} cannot be reached: {str(error).splitlines()[0]}") from None
        source = cls(str(url), connection, cursor, errors)
        if url.path:
            try:
                source.run([f"USE {source.texts.name(url.path)}"])
            except SourceError:
                source.close()
                raise
        return source

    # Statements ------------------------------------------------------------------------------------------

    def rows(self, sql: str) -> pa.RecordBatchReader | None:
        self._stopped.clear()
        self._cursor.execute_async(sql)
        pause, longest = _POLL_SECS
        while self._cursor.is_executing():
            self._check(pause)
            pause = min(2 * pause, longest)
        self._cursor._wait_to_finish()  # raises its error
        described = self._describe_query(sql)
        if not described:
            return None
        return self._reader(described, self._fetch_all)

    def _describe_query(self, sql: str) -> Sequence[Any]:
        try:
            columns = self._cursor.description or ()
        except KeyError:
            raise SourceError(
                "the query has a column of a type that impyla does not know, such as INTERVAL",
                hint="cast it in the SELECT, for example CAST(x AS STRING)",
            ) from None
        is_query = self.lexicon.first_word(sql) in _HAVE_ROWS
        return () if [column[0] for column in columns] == _NO_ROWS and not is_query else columns

    def _fetch_all(self) -> list[Any]:
        self._check()
        return list(self._cursor.fetchmany(FETCH_ROWS))

    def _check(self, pause: float = 0) -> None:
        """Wait. Raises SourceError, and stops the statement, if another thread interrupts it."""
        if self._stopped.wait(pause):
            self._cursor.cancel_operation()
            raise SourceError("the statement was interrupted")

    def probe(self, query: str) -> pa.Schema:
        """Return the columns of a query. Hive allows WITH at its beginning alone, so that stays there."""
        start, depth, before = 0, 0, ""
        for word in self.lexicon.words(query) if self.lexicon.first_word(query) == "WITH" else ():
            depth += {"(": 1, ")": -1}.get(word[0], 0)
            if not depth and before == ")" and word[0].upper() == "SELECT":
                start = word.start()
                break
            before = word[0]
        probe = f"{query[:start]}SELECT * FROM (\n{query[start:]}\n) AS edl_query LIMIT 0"
        reader = self._run(probe, query)
        self._end_result()
        return reader.schema

    def arrow_type(self, column: Sequence[Any]) -> pa.DataType:
        name, kind, _, _, precision, scale, *_ = column
        if kind == "DECIMAL":
            return pa.decimal128(precision, scale)
        if kind not in _TYPES:
            raise SourceError(
                f"column {name} is of the type {kind}, which cannot be used",
                hint=f"write its parts in the SELECT, or concat_ws(',', {name}) for an ARRAY",
            )
        return _TYPES[kind]

    def append(self, parts: Parts, batches: pa.RecordBatchReader) -> None:
        """Insert the rows as literals; Hive allows no expressions in VALUES."""
        into = f"INSERT INTO TABLE {self.texts.name(*parts)} SELECT inline(array(\nstruct("
        kinds = [self.texts.column(field) for field in batches.schema]
        for batch in rechunk_rows(batches, batches.schema, INSERTED):
            values = [
                pc.binary_join_element_wise(
                    "CAST(", self.texts.literals(_drop_zone(column)), f" AS {kind})", ""
                )
                for column, kind in zip(batch.columns, kinds, strict=True)
            ]
            rows = pc.binary_join_element_wise(*values, ", ").to_pylist()
            self.rows(into + "),\nstruct(".join(rows) + ")))")

    def interrupt(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        with suppress(*self.driver_errors):
            self._cursor.close()
        self.connection.close()

    # Tables ----------------------------------------------------------------------------------------------

    def tables(self) -> list[str]:
        return [
            name for name in map(_last_text, few_rows(self, self.tables_query)) if not name.startswith(_MARK)
        ]

    def stored_name(self, name: str) -> str:
        return name.lower()

    def place(self, target: str) -> Parts:
        if len(parts := super().place(target)) > 2:
            raise SourceError(f"the name {target} has {len(parts)} parts", hint="write it as database.table")
        return parts

    def existing(self, parts: Parts) -> ExistingTable | None:
        inside = f" IN {self.texts.name(*parts[:-1])}" if len(parts) == 2 else ""
        like = f"{inside} LIKE {self.texts.text(parts[-1])}"

        def listed(kind: str) -> bool:
            return parts[-1] in map(_last_text, few_rows(self, f"SHOW {kind}{like}"))

        if not listed("TABLES"):
            return None
        if listed("VIEWS"):
            return ExistingTable(True, "")
        rows = few_rows(self, f"SHOW TBLPROPERTIES {self.texts.name(*parts)}")
        return ExistingTable(False, {str(key): str(value) for key, value in rows}.get(_MARK, ""))

    def create(self, parts: Parts, columns: str, mark: str) -> Sequence[str]:
        table = f"CREATE TABLE {self.texts.name(*parts)} ({columns}) STORED AS PARQUET"
        return [f"{table} TBLPROPERTIES ('{_MARK}' = {self.texts.text(mark)})"]

    # Errors ----------------------------------------------------------------------------------------------

    def message(self, error: Exception) -> str:
        """Return the message with places that count from 1, without the lines of Java."""
        text = str(error).partition("\n\tat ")[0]
        return re.sub(r"((?:, pos |line \d+:))(\d+)", lambda match: f"{match[1]}{int(match[2]) + 1}", text)


def _last_text(row: tuple[Any, ...]) -> str:
    """Return the name in a row of SHOW, which has the database before it in Spark, and a flag behind it."""
    return str([value for value in row if isinstance(value, str)][-1])


def _drop_zone(column: pa.Array) -> pa.Array:
    return column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column
