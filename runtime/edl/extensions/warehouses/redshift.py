"""Amazon Redshift by psycopg: it speaks PostgreSQL's protocol, and its rows come as Python values, without a cursor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, ClassVar

import pyarrow as pa

from edl.data.server_url import ServerURL
from edl.data.source import UnreachableError
from edl.extensions.warehouses.drivers import DBAPISource
from edl.extensions.warehouses.source import Parts
from edl.extensions.warehouses.sql import BACKSLASHES
from edl.sources.cursors import FETCH_ROWS

_QUERIES = ("SELECT", "WITH", "VALUES", "SHOW", "EXPLAIN", "(")
_TYPES = {  # number of a type -> Arrow's; all others are texts
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    26: pa.int64(),
    700: pa.float32(),
    701: pa.float64(),
    1082: pa.date32(),
    1083: pa.time64("us"),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
    6551: pa.binary(),  # VARBYTE
}
_NUMERIC = 1700


class RedshiftSource(DBAPISource):
    """`edl.data.source.Source` for a database of Redshift."""

    label = "Redshift"
    extra = "postgresql"
    dialect = "redshift"
    lexicon = BACKSLASHES
    options = ("schema", "sslmode", "sslrootcert")
    declared: ClassVar = {"TEXT": "VARCHAR(65535)", "BLOB": "VARBYTE", "[]": "SUPER"}
    patterns = (
        re.compile(r'(?P<message>relation "?(?P<table>.+?)"? does not exist)'),
        re.compile(r'(?P<message>column "?(?P<column>[^"]+?)"? does not exist)'),
        re.compile(r"(?P<message>function (?P<name>\w+)\(.*\) does not exist)"),
        re.compile(r'(?P<message>syntax error at or near "(?P<name>[^"]+)")'),
    )
    tables_query = (
        "SELECT CASE WHEN nspname = current_schema() THEN '' ELSE nspname END AS home, relname"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE relkind IN ('r', 'v')"
        " AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'pg_internal', 'catalog_history')"
        " ORDER BY 1, 2"
    )
    databases_query = "SELECT datname FROM pg_database WHERE datname NOT LIKE 'template%' ORDER BY datname"

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> RedshiftSource:
        """Open the database. `create` has no effect: CREATE DATABASE makes one."""
        options = cls._check_options(url)
        try:
            from edl.sources.postgresql.driver import psycopg
        except ImportError:
            raise cls._needs("psycopg") from None
        account = url.with_password()
        schema = options.pop("schema", "")
        try:
            connection = psycopg.connect(
                host=url.host,
                port=url.port,
                user=url.user,
                password=account.password or None,
                dbname=url.path,
                autocommit=True,
                prepare_threshold=None,
                **options,
            )
        except psycopg.Error as error:
            reason = str(error).splitlines()[-1].rpartition(": ")[2]
            raise UnreachableError(f"Redshift at {url.host}:{url.port} cannot be reached: {reason}") from None
        cls.driver_errors = (psycopg.Error,)
        source = cls(str(url), connection)
        if schema:
            source.run([f"SET search_path TO {source.texts.name(schema)}, public"])
        return source

    def rows(self, sql: str) -> pa.RecordBatchReader | None:
        self._end_cursor()
        if self.lexicon.first_word(sql) not in _QUERIES:
            self.connection.execute(sql)
            return None
        cursor = self.connection.cursor()
        self._cursor = running = cursor.stream(sql, size=FETCH_ROWS)  # closing it cancels the statement
        first = list(islice(running, 1))  # begins the statement
        if not first:  # the driver describes no columns of a result without rows
            self._cursor = cursor = self.connection.execute(sql)
        rows = chain(first, running)
        return self._reader(cursor.description, lambda: list(islice(rows, FETCH_ROWS)))

    def run(self, statements: Sequence[str]) -> None:
        try:
            super().run(statements)
        except BaseException:
            self.connection.rollback()
            raise

    def arrow_type(self, column: Any) -> pa.DataType:
        if column.type_code == _NUMERIC:
            if column.precision is None:
                return pa.float64()
            return pa.decimal128(column.precision, column.scale)
        return _TYPES.get(column.type_code, pa.string())

    def interrupt(self) -> None:
        with suppress(*self.driver_errors):
            self.connection.cancel_safe()

    def stored_name(self, name: str) -> str:
        """Return the name in small letters, which Redshift makes of all, also of those in quotation marks."""
        return name.lower()

    def existing_query(self, parts: Parts) -> str:
        schema = self.texts.text(parts[-2]) if len(parts) > 1 else "current_schema()"
        return (
            "SELECT CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind,"
            " obj_description(c.oid, 'pg_class') AS mark FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            f" WHERE relkind IN ('r', 'v') AND nspname = {schema} AND relname = {self.texts.text(parts[-1])}"
        )

    def create(self, parts: Parts, columns: str, mark: str) -> Sequence[str]:
        name = self.texts.name(*parts)
        return [f"CREATE TABLE {name} ({columns})", f"COMMENT ON TABLE {name} IS {self.texts.text(mark)}"]

    def rename(self, table: Parts, name: Parts) -> str:
        return f"ALTER TABLE {self.texts.name(*table)} RENAME TO {self.texts.name(name[-1])}"

    def swap(self, new: Parts, target: Parts, old: Parts, *, exists: bool) -> Sequence[str]:
        return ["BEGIN", *super().swap(new, target, old, exists=exists), "COMMIT"]
