"""Snowflake by its ADBC driver. It fetches results as Arrow and loads tables by files of Parquet in a stage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from edl.data.server_url import ServerURL
from edl.errors import SourceError
from edl.extensions.warehouses.drivers import ADBCSource
from edl.extensions.warehouses.source import Parts
from edl.extensions.warehouses.sql import SNOWFLAKE

_SMALL = re.compile(r"[a-z_][a-z0-9_$]*")
_AUTHENTICATION = {"password": "auth_snowflake", "pat": "auth_pat", "oauth": "auth_oauth"}
_DRIVER = "adbc.snowflake.sql."


class SnowflakeSource(ADBCSource):
    """`edl.data.source.Source` for a schema of Snowflake.

    A number without digits after the point is read as 64 bits, any other as a double. Names in small letters are those
    that a query writes without quotation marks, and Snowflake makes capitals of them.
    """

    label = "Snowflake"
    extra = "snowflake"
    dialect = "snowflake"
    lexicon = SNOWFLAKE
    options = ("warehouse", "role", "auth")
    declared: ClassVar = {
        "TIMESTAMP": "TIMESTAMP_NTZ",
        "TIMESTAMPTZ": "TIMESTAMP_TZ",
        "BLOB": "BINARY",
        "[]": "ARRAY",
    }
    patterns = (
        re.compile(r"(?P<message>(?:Object|Table|Schema|Database) '(?P<table>[^']+)' does not exist[^.\n]*)"),
        re.compile(r"(?P<message>invalid identifier '(?P<column>[^']+)')"),
        re.compile(r"(?P<message>Unknown (?:user-defined )?function (?P<name>\w+))"),
        re.compile(r"(?P<message>syntax error) line \d+ at position \d+ unexpected '(?P<name>[^']+)'"),
        re.compile(r"\d{6} \(\w{5}\): (?:[0-9a-f-]+: )?(?P<message>.*)", re.DOTALL),
    )
    tables_query = (
        "SELECT CASE WHEN table_schema = CURRENT_SCHEMA() THEN '' ELSE table_schema END AS home, table_name"
        " FROM information_schema.tables WHERE table_schema <> 'INFORMATION_SCHEMA' ORDER BY 1, 2"
    )
    databases_query = "SELECT database_name FROM information_schema.databases ORDER BY 1"

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> SnowflakeSource:
        """Open the schema. `create` has no effect: CREATE DATABASE makes one."""
        options = cls._check_options(url)
        authentication = options.pop("auth", "password")
        if authentication not in _AUTHENTICATION:
            raise SourceError(f"auth is {authentication!r}", hint=f"known: {', '.join(_AUTHENTICATION)}")
        try:
            import adbc_driver_snowflake.dbapi as adbc
        except ImportError:
            raise cls._needs("adbc-driver-snowflake") from None
        database, _, schema = url.path.partition("/")
        secret = url.with_password().password
        by_name = authentication == "password"
        arguments = {
            f"{_DRIVER}account": url.host,
            "username": url.user,
            f"{_DRIVER}auth_type": _AUTHENTICATION[authentication],
            "password" if by_name else f"{_DRIVER}client_option.auth_token": secret,
            f"{_DRIVER}db": database,
            f"{_DRIVER}schema": schema or "PUBLIC",
            f"{_DRIVER}client_option.use_high_precision": "false",
            f"{_DRIVER}client_option.app_name": "sqlflow-edl",
            **{f"{_DRIVER}{option}": value for option, value in options.items()},
        }
        cls.driver_errors = (adbc.Error,)
        try:
            connection = adbc.connect(db_kwargs=arguments, autocommit=True)
        except adbc.Error as error:
            reason = str(error).replace(secret, "…") if secret else str(error)
            raise SourceError(f"Snowflake cannot be opened: {reason.splitlines()[0][:300]}") from None
        return cls(str(url), connection)

    def stored_name(self, name: str) -> str:
        return name.upper() if _SMALL.fullmatch(name) else name

    def existing_query(self, parts: Parts) -> str:
        catalog = f"{self.texts.name(parts[0])}." if len(parts) == 3 else ""
        schema = self.texts.text(parts[-2]) if len(parts) > 1 else "CURRENT_SCHEMA()"
        return (
            f"SELECT table_type, comment FROM {catalog}information_schema.tables"
            f" WHERE table_schema = {schema} AND table_name = {self.texts.text(parts[-1])}"
        )

    def create(self, parts: Parts, columns: str, mark: str) -> Sequence[str]:
        return [f"CREATE TABLE {self.texts.name(*parts)} ({columns}) COMMENT = {self.texts.text(mark)}"]

    def swap(self, new: Parts, target: Parts, old: Parts, *, exists: bool) -> Sequence[str]:
        """Return one statement, which other readers see done or not."""
        swap = f"ALTER TABLE {self.texts.name(*target)} SWAP WITH {self.texts.name(*new)}"
        return [swap if exists else self.rename(new, target)]
