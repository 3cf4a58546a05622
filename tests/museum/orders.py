"""Pinned rows of one table of all types per source: their digests, which fix the values, their types and their order.

A table is made by statements of the database's own SQL (`NAME.sql`), of which the last is the query, or is a file.
`NAME.json` has, for each way to pin the rows, the digest that a job stores (`Pinned.digest`) and the digest of the
values in their order, so that a change of one column, of the order, and of the form of the file can be told apart.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from edl.data import Source, connect, open_reader
from edl.spec import Split
from tests.museum.collection import FOLDER, read_table, write_table

ORDERS = FOLDER / "orders"
FILES = ("csv", "parquet")
SOURCES = ("duckdb", "sqlite", *FILES, "mysql", "postgres", "maxcompute")
TABLE = "typed"
# Way to pin all columns -> seed, split. Without a seed the rows have the order of the query.
WAYS: dict[str, tuple[int | None, Split | None]] = {
    "in the query's order": (None, None),
    "shuffled, seed 1": (1, None),
    "shuffled, seed 2": (2, None),
    "split at random": (1, Split("random", fraction=0.2)),
    "split by time": (1, Split("time", "moment", 0.2)),
    "split by group": (1, Split("group", "text", 0.2)),
    "split by class": (1, Split("stratified", "yes", 0.2)),
    "split by column": (1, Split("column", "yes")),
}


def make_table(source: Source, name: str) -> str:
    """Make the table in a database, unless the source is a file; return the query to pin."""
    if name in FILES:
        return f"SELECT * FROM {TABLE}"
    if name == "maxcompute":
        rows = read_table(ORDERS / "maxcompute.arrow")
        source.stage(TABLE, "museum", 0, 0, rows.to_reader())
        source.commit(TABLE, "museum", 1)
        return f"SELECT * FROM {TABLE}"
    *make, query = (each for each in statements(name) if each)
    for statement in make:
        source.execute(statement)
    return query


def statements(dialect: str) -> Iterator[str]:
    text = (ORDERS / f"{dialect}.sql").read_text(encoding="utf-8")
    yield from (each.strip() for each in text.split(";\n"))


def measure(source: Source, query: str, folder: Path) -> dict[str, Any]:
    """Digests of the pinned rows: of each column by itself, and of all columns in each way."""
    with source.execute(query) as reader:  # type: ignore[union-attr]
        names = reader.schema.names
    ordered = "SELECT * FROM ({}) AS t ORDER BY id, yes" if source.dialect != "maxcompute" else "{}"
    columns = {name: digest(source, f"SELECT {name} FROM ({query}) AS t", folder, 1, None) for name in names}
    ways = {
        way: digest(source, query if seed else ordered.format(query), folder, seed, split)
        for way, (seed, split) in WAYS.items()
    }
    return {"columns": columns, "ways": ways}


def digest(source: Source, query: str, folder: Path, seed: int | None, split: Split | None) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    pinned = source.pin(query, folder, seed=seed or 0, shuffle=seed is not None, split=split)
    reader = open_reader(pinned, folder)
    rows = pa.Table.from_batches(reader.read(0, pinned.rows), reader.schema)
    source.unpin(pinned, folder)
    split_rows = {} if pinned.validation is None else {"validation": msgspec.to_builtins(pinned.validation)}
    values = hashlib.sha256(str([str(rows.schema), *map(str, rows.to_pylist())]).encode()).hexdigest()
    return {"rows": pinned.rows, "digest": pinned.digest, "values": values, **split_rows}


def file_rows() -> pa.Table:
    """Rows of the files and of MaxCompute: those of types that each of them has."""
    with connect("duckdb:") as source:
        make_table(source, "duckdb")
        query = f"""SELECT id, yes, small, whole, large, CASE WHEN isfinite(x) THEN x END AS x, price, text, day,
        moment FROM {TABLE} ORDER BY id"""
        reader = source.execute(query)
        assert reader is not None
        return reader.read_all()


def write_files() -> None:
    rows = file_rows()
    write_table(ORDERS / "maxcompute.arrow", rows)
    pa.csv.write_csv(rows, ORDERS / "typed.csv")
    pa.parquet.write_table(rows, ORDERS / "typed.parquet")


def write(name: str, measured: dict[str, Any]) -> None:
    (ORDERS / f"{name}.json").write_text(
        json.dumps(measured, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ORDERS / f"{name}.json").read_text(encoding="utf-8"))
    return found
