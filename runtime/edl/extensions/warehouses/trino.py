"""Trino by its DB-API client, over HTTP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from edl.data.server_url import ServerURL
from edl.data.source import UnreachableError
from edl.errors import SourceError
from edl.extensions.warehouses.drivers import DBAPISource
from edl.extensions.warehouses.source import Parts

_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double": pa.float64(),
    "varbinary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
}
_DIGITS = re.compile(r"decimal\((\d+), ?(\d+)\)")
_PRECISION = re.compile(r"\(\d+\)")
_NESTED = re.compile(r"(?:row|map|interval)\b|\w*HyperLogLog|\w*digest", re.IGNORECASE)


class TrinoSource(DBAPISource):
    """`edl.data.source.Source` for a schema of a catalog of Trino."""

    label = "Trino"
    extra = "trino"
    dialect = "trino"
    options = ("secure", "verify")
    declared: ClassVar = {  # what most connectors have
        "TINYINT": "INTEGER",
        "SMALLINT": "INTEGER",
        "TIME": "TIME(6)",
        "TIMESTAMP": "TIMESTAMP(6)",
        "TIMESTAMPTZ": "TIMESTAMP(6) WITH TIME ZONE",
        "[]": "ARRAY({})",
    }
    patterns = tuple(
        re.compile(r"line (?P<line>\d+):(?P<at>\d+): " + pattern)
        for pattern in (
            r"(?P<message>(?:Table|Schema|Catalog) '(?P<table>[^']+)' does not exist)",
            r"(?P<message>Column '(?P<column>[^']+)' cannot be resolved)",
            r"(?P<message>Function '(?P<name>[^']+)' not registered)",
            r"(?P<message>mismatched input '[^']*').*",
            r"(?P<message>.+)",
        )
    )
    tables_query = (
        "SELECT '' AS home, table_name FROM information_schema.tables"
        " WHERE table_schema = current_schema ORDER BY table_name"
    )
    databases_query = "SELECT schema_name FROM information_schema.schemata ORDER BY schema_name"

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> TrinoSource:
        """Open the schema. `create` has no effect: CREATE SCHEMA makes one."""
        options = cls._check_options(url)
        try:
            import trino
            from requests import RequestException
        except ImportError:
            raise cls._needs("trino") from None
        catalog, _, schema = url.path.partition("/")
        if not schema:
            raise SourceError(
                f"{url} names no schema", hint="write it as trino://user@host:8080/catalog/schema"
            )
        account = url.with_password()
        secure = bool(account.password) or options.get("secure", "") in ("true", "1")
        connection = trino.dbapi.connect(
            host=url.host,
            port=url.port,
            user=url.user or "sqlflow-edl",
            catalog=catalog,
            schema=schema,
            http_scheme="https" if secure else "http",
            auth=trino.auth.BasicAuthentication(url.user, account.password) if account.password else None,
            verify=options.get("verify", "") not in ("false", "0"),
            source="sqlflow-edl",
            timezone="UTC",
        )
        cls.driver_errors = (trino.exceptions.Error, RequestException)
        source = cls(str(url), connection)
        try:
            connection.cursor().execute("SELECT 1").fetchall()
        except (RequestException, trino.exceptions.TrinoConnectionError) as error:
            reason = str(error).rpartition(": ")[2].rstrip("')\"")
            raise UnreachableError(f"Trino at {url.host}:{url.port} cannot be reached: {reason}") from None
        except cls.driver_errors as error:
            raise source.translate(error, "", "") from None
        return source

    def arrow_type(self, column: Sequence[Any]) -> pa.DataType:
        return self._type(column[0], str(column[1]))

    def _type(self, name: str, kind: str) -> pa.DataType:
        if kind.startswith("array("):
            return pa.list_(self._type(name, kind[6:-1]))
        if digits := _DIGITS.fullmatch(kind):
            return pa.decimal128(int(digits[1]), int(digits[2]))
        if _NESTED.match(kind):
            raise SourceError(
                f"column {name} is of the type {kind}, which cannot be used",
                hint=f"cast it in the SELECT, for example CAST({name} AS JSON)",
            )
        return _TYPES.get(_PRECISION.sub("", kind), pa.string())

    def message(self, error: Exception) -> str:
        return str(getattr(error, "message", error))

    def stored_name(self, name: str) -> str:
        """Return the name in small letters, as Trino makes all names."""
        return name.lower()

    def existing_query(self, parts: Parts) -> str:
        catalog = self.texts.text(parts[0]) if len(parts) == 3 else "current_catalog"
        schema = self.texts.text(parts[-2]) if len(parts) > 1 else "current_schema"
        home = f"{self.texts.name(parts[0])}." if len(parts) == 3 else ""
        return (
            f"SELECT t.table_type, c.comment FROM {home}information_schema.tables t"
            f" LEFT JOIN system.metadata.table_comments c ON c.catalog_name = {catalog}"
            " AND c.schema_name = t.table_schema AND c.table_name = t.table_name"
            f" WHERE t.table_schema = {schema} AND t.table_name = {self.texts.text(parts[-1])}"
        )
