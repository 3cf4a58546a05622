"""Registries of models as each database stored them: statements of SQL that make the tables and their rows.

A database dumps and loads them by its own client, which knows nothing of this project. MaxCompute is the double of
`tests/maxcompute`, whose tables are kept as rows of Arrow, by partition, and loaded by PyODPS.

Each registry has `line` in two versions, the first one current and tagged `best`, a third that failed and a fourth
that was dropped.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import duckdb
import psycopg
import pymysql
from odps import ODPS

from edl.models.registry.base import Registry
from edl.models.registry.records import ModelRecord
from tests.museum.collection import FOLDER, MODELS

REGISTRIES = FOLDER / "registries"
STORE = FOLDER / "store"  # of `--model-store`
RENAMED = FOLDER / "renamed_store"  # the same with a model that was renamed
EARLIER = "line"  # name of the renamed model before
NAME, TAG, REASON = "größe.line", "best", "the loss is not a number"
FIRST, SECOND = MODELS / "torch_linear_number.zip", MODELS / "lightgbm_increment.zip"
TABLES = ("sqlflow_edl_models", "sqlflow_edl_chunks", "sqlflow_edl_tags")


def record(rows: int) -> ModelRecord:
    return ModelRecord("LinearRegressor", "torch", rows, {"rmse": 0.5, "r2": None}, "SELECT 'it''s' …")


def save(registry: Registry, name: str = NAME) -> None:
    """Save the versions that each registry of the museum has."""
    registry.save(name, FIRST, record(1))
    registry.save(name, SECOND, record(2))
    registry.record_failure(name, record(3), REASON)
    registry.save(name, FIRST, record(4))
    registry.drop(f"{name}@4")
    registry.tag(f"{name}@1", TAG)
    registry.activate(f"{name}@1")


def save_and_rename(registry: Registry) -> None:
    """Save the versions under another name, and then give the model its own."""
    save(registry, EARLIER)
    registry.rename(EARLIER, NAME)


# Dumps -------------------------------------------------------------------------------------------------------


def path_of(name: str) -> Path:
    return REGISTRIES / f"{name}.{'json' if name == 'maxcompute' else 'sql'}"


def dump(name: str, url: str) -> Any:
    """Tables of the registry in the database, read by its own client."""
    with DATABASES[name](url) as client:
        return client.dump()


def load(name: str, url: str) -> None:
    """Make the tables of the museum's registry in the database, by its own client."""
    with DATABASES[name](url) as client:
        client.load(read(name))


def write(name: str, dumped: Any) -> None:
    path = path_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{each};\n\n" for each in dumped)
    if name == "maxcompute":
        text = json.dumps(dumped, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def read(name: str) -> Any:
    text = path_of(name).read_text(encoding="utf-8")
    if name == "maxcompute":
        return json.loads(text)
    return [each.strip() for each in text.split(";\n\n") if each.strip()]


class Client:
    """Connection of a database's own client, with the statements of SQL that a dump has."""

    mark: str  # literal of bytes, with their hexadecimal digits in the place of {}

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection: Any = self.connect(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()

    def connect(self, url: str) -> object: ...

    def rows(self, sql: str) -> Sequence[tuple[Any, ...]]: ...

    def created(self, table: str) -> str:
        """Statement that makes the table."""

    def dump(self) -> Any:
        inserted = (
            f"INSERT INTO {table} VALUES ({', '.join(map(self.literal, row))})"
            for table in TABLES
            for row in self.rows(f"SELECT * FROM {table} ORDER BY 1, 2")
        )
        return [*map(self.created, TABLES), *inserted]

    def load(self, dumped: Any) -> None:
        for statement in dumped:
            self.connection.execute(statement)
        self.connection.commit()

    def literal(self, value: object) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, bytes | memoryview):
            return self.mark.format(bytes(value).hex())
        return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


class DuckDB(Client):
    mark = "unhex('{}')"

    def connect(self, url: str) -> object:
        return duckdb.connect(url.removeprefix("duckdb:"))

    def rows(self, sql: str) -> Sequence[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return found

    def created(self, table: str) -> str:
        return str(self.rows(f"SELECT sql FROM duckdb_tables() WHERE table_name = '{table}'")[0][0]).rstrip(
            ";"
        )

    def load(self, dumped: Any) -> None:
        for statement in dumped:
            self.connection.execute(statement)


class SQLite(Client):
    mark = "x'{}'"

    def connect(self, url: str) -> object:
        return sqlite3.connect(url.removeprefix("sqlite:"))

    def rows(self, sql: str) -> Sequence[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return found

    def created(self, table: str) -> str:
        return str(self.rows(f"SELECT sql FROM sqlite_master WHERE name = '{table}'")[0][0])


class MariaDB(Client):
    mark = "x'{}'"

    def connect(self, url: str) -> object:
        parts = urlsplit(url)
        return pymysql.connect(
            host=parts.hostname, port=parts.port or 0, user=parts.username, password=unquote(parts.password or ""),
            database=parts.path.strip("/"), charset="utf8mb4",
        )  # fmt: skip

    def rows(self, sql: str) -> Sequence[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            found: Sequence[tuple[Any, ...]] = cursor.fetchall()
            return found

    def created(self, table: str) -> str:
        return str(self.rows(f"SHOW CREATE TABLE {table}")[0][1])

    def load(self, dumped: Any) -> None:
        for statement in dumped:
            self.rows(statement)
        self.connection.commit()


class PostgreSQL(Client):
    mark = "'\\x{}'"

    def connect(self, url: str) -> object:
        return psycopg.connect(url)

    def rows(self, sql: str) -> Sequence[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return found

    def created(self, table: str) -> str:
        """Put together from the catalogue, because the server does not say how a table was made."""
        columns = self.rows(
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
            f" WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum"
        )
        [(key,)] = self.rows(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
            f" WHERE contype = 'p' AND conrelid = '{table}'::regclass"
        )
        parts = [f"{name} {kind}{' NOT NULL' if needed else ''}" for name, kind, needed in columns]
        return f"CREATE TABLE {table} ({', '.join([*parts, key])})"


class MaxCompute(Client):
    """PyODPS. A dump has the columns, partition columns and partitions of each table; bytes as hexadecimal digits."""

    tables = ("sqlflow_edl_models", "sqlflow_edl_archives")

    def connect(self, url: str) -> object:
        parts, options = urlsplit(url), dict(parse_qsl(urlsplit(url).query))
        endpoint = f"http://{parts.hostname}:{parts.port}{parts.path}"
        return ODPS(
            parts.username, unquote(parts.password or ""), project=options["curr_project"],
            endpoint=endpoint, tunnel_endpoint=endpoint,
        )  # fmt: skip

    def __exit__(self, *error: object) -> None: ...

    def dump(self) -> Any:
        return [self.dumped(self.connection.get_table(name)) for name in self.tables]

    def dumped(self, table: Any) -> dict[str, Any]:
        schema, parts = table.table_schema, []
        columns, keys = (
            [[c.name, str(c.type)] for c in each] for each in (schema.simple_columns, schema.partitions)
        )
        for part in table.partitions:
            with table.open_reader(partition=str(part.partition_spec)) as reader:
                rows = [[self.plain(record[name]) for name, _ in columns] for record in reader]
            values = {name: str(part.partition_spec.kv[name]) for name, _ in keys}
            parts.append({"partition": values, "rows": rows})
        return {"table": table.name, "columns": columns, "keys": keys, "parts": parts}

    def plain(self, value: object) -> object:
        return {"hex": value.hex()} if isinstance(value, bytes) else value

    def load(self, dumped: Any) -> None:
        for each in dumped:
            columns, keys = (
                ", ".join(f"{name} {kind}" for name, kind in each[part]) for part in ("columns", "keys")
            )
            table = self.connection.create_table(each["table"], (columns, keys))
            for part in each["parts"]:
                spec = ",".join(f"{name}='{value}'" for name, value in part["partition"].items())
                table.create_partition(spec)
                rows = [
                    [bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for value in row]
                    for row in part["rows"]
                ]
                if rows:
                    with table.open_writer(partition=spec) as writer:
                        writer.write(rows)


DATABASES: dict[str, type[Client]] = {
    "duckdb": DuckDB,
    "sqlite": SQLite,
    "mysql": MariaDB,
    "postgres": PostgreSQL,
    "maxcompute": MaxCompute,
}
