"""Ordered rows: the query of rows with the keys of their order, and rows in that order; see `edl.sources.row_order`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb
import msgspec
import pyarrow as pa
from duckdb import sqltypes

from edl.data.arrow_types import BATCH_ROWS, Watched, cast_batch
from edl.data.names import free_name, quote_part
from edl.data.pinned import pin_rows
from edl.data.source import Pinned
from edl.sources.duckdb.engine import open_database, planning_wide_hashes
from edl.sources.duckdb.errors import raise_interrupt, while_reading
from edl.sources.row_order.order import KeyColumn, find_places
from edl.sources.row_order.store import RowStore
from edl.sources.row_order.units import ValidationRows
from edl.spec import Split

Column = tuple[str, sqltypes.DuckDBPyType]

_WHOLE = re.compile(r"U?(?:TINYINT|SMALLINT|INTEGER)((?:\[\d*\])*)")
_FRACTIONS = re.compile(r"(?:DOUBLE|FLOAT|DECIMAL\(\d+,\d+\))((?:\[\d*\])*)")


class KeyedQuery(NamedTuple):
    """Query of rows with their keys in the last columns. keys: their names, as `edl.sources.row_order.order` does."""

    text: str
    keys: tuple[str, ...]


def keyed_query(
    query: str, columns: Sequence[Column], key: str = "", split: Split | None = None
) -> KeyedQuery:
    """Return a DuckDB query of the rows with the keys that decide their order.

    `key` is a column that is not part of the rows; if given, only it is selected, beside the keys.
    """
    hashed = [(name, kind) for name, kind in columns if name != key]
    keys = {"near": _hash(hashed, "REAL"), "exact": _hash(hashed, "DOUBLE")}
    if split is not None:
        keys |= _split_keys(split, hashed)
    names = [name for name, _ in columns]
    values = [key] if key else list(names)
    for name, expression in keys.items():
        names.append(free_name(name, names))
        keys[name] = f"{expression} AS {quote_part(names[-1])}"
    return KeyedQuery(
        f"SELECT {', '.join([*map(quote_part, values), *keys.values()])} FROM (\n{query}\n)", tuple(keys)
    )


def _split_keys(split: Split, columns: Sequence[Column]) -> dict[str, str]:
    """Return the expressions of the keys of a split, by their names."""
    column, kind = quote_part(split.column), dict(columns).get(split.column)
    if split.by == "column":
        return {"held": f"coalesce({column}::BOOLEAN, true)"}
    if split.by == "time":
        is_fractional = str(kind) in ("DOUBLE", "FLOAT")
        return {"unit": f"CASE WHEN isfinite({column}) THEN {column} END" if is_fractional else column}
    if split.by == "group":
        keys = {"unit": _hash([(name, kind) for name, kind in columns if name == split.column], "REAL")}
        if split.folds and split.folds.label:
            label = split.folds.label
            keys["kind"] = _hash([(name, kind) for name, kind in columns if name == label], "REAL")
        return keys
    keys = {"features": _hash([(name, kind) for name, kind in columns if name != split.column], "REAL")}
    if split.by == "stratified":
        keys["kind"] = _hash([(name, kind) for name, kind in columns if name == split.column], "REAL")
    return keys


def _hash(columns: Iterable[Column], fraction: str) -> str:
    """Return the expression of the hash of columns, of none a constant. fraction: type of numbers with fractions."""
    inputs = ", ".join(_hash_input(name, kind, fraction) for name, kind in columns)
    return f"hash({inputs})" if inputs else "0::UBIGINT"


class OrderedRows:
    """Rows in their pinned order. validation: the rows that validate; None without a split."""

    def __init__(self, reader: pa.RecordBatchReader, validation: ValidationRows | None = None) -> None:
        self.reader = reader
        self.validation = validation

    def pin(self, folder: Path, *, source: str, select: str, seed: int, shuffled: bool) -> Pinned:
        """Pin the rows in a file of the folder."""
        record = pin_rows(folder, self.reader, source=source, select=select, seed=seed, shuffled=shuffled)
        if self.validation is None:
            return record
        rows, blocks = self.validation
        return msgspec.structs.replace(record, validation=rows, blocks=blocks)


@contextmanager
def order_rows(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    keys: Sequence[str],
    seed: int,
    folder: Path,
    split: Split | None = None,
) -> Iterator[OrderedRows]:
    """Yield the rows of a `keyed_query` in their order, without the keys. Rows beyond memory spill to `folder`.

    schema: of the rows, with the keys behind them.
    """
    width = len(schema) - len(keys)
    kept = {field.name: KeyColumn(field.type) for field in list(schema)[width:]}
    with RowStore(pa.schema(list(schema)[:width]), folder) as store:
        for batch in batches:
            for column, values in zip(kept.values(), batch.columns[width:], strict=True):
                column.add(values)
            store.add(batch.select(range(width)))
        columns = dict(zip(keys, (column.take() for column in kept.values()), strict=True))
        order, validation = find_places(columns, seed, split)
        yield OrderedRows(pa.RecordBatchReader.from_batches(store.schema, store.gather(order)), validation)


@contextmanager
def shuffled_rows(
    reader: pa.RecordBatchReader, seed: int, folder: Path, split: Split | None = None
) -> Iterator[OrderedRows]:
    """Yield the rows of a source other than DuckDB in that order, spilling to `folder`.

    Errors of the reader are passed on unchanged.
    """
    with _read_ordered(reader, seed, folder, "", reader.schema, split) as rows:
        yield rows


@contextmanager
def shuffled_keys(
    reader: pa.RecordBatchReader, seed: int, folder: Path, key: str, split: Split | None = None
) -> Iterator[OrderedRows]:
    """Yield the column `key` of the rows, in the order determined by their other columns."""
    with _read_ordered(reader, seed, folder, key, pa.schema([reader.schema.field(key)]), split) as keys:
        yield keys


@contextmanager
def _read_ordered(
    reader: pa.RecordBatchReader, seed: int, folder: Path, key: str, schema: pa.Schema, split: Split | None
) -> Iterator[OrderedRows]:
    """Yield the ordered rows with `schema`."""
    watched = Watched(reader)
    with (
        open_database(temporary=folder / "shuffle") as connection,
        planning_wide_hashes(connection, len(reader.schema)),
    ):
        connection.register("incoming", pa.RecordBatchReader.from_batches(reader.schema, watched))
        query = keyed_query("FROM incoming", _columns(connection, reader.schema), key, split)
        keyed = connection.sql(query.text)
        types = keyed.limit(0).to_arrow_table().schema
        schema = pa.schema([*schema, *list(types)[len(schema) :]])
        with order_rows(_run(keyed, watched, schema), schema, query.keys, seed, folder, split) as rows:
            yield rows


def _run(keyed: duckdb.DuckDBPyRelation, watched: Watched, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        with watched.errors(duckdb.Error, pa.ArrowException, OSError):
            for batch in keyed.to_arrow_reader(BATCH_ROWS):
                yield cast_batch(batch, schema)
    except (duckdb.Error, pa.ArrowException) as error:
        raise while_reading(error) from None
    except RuntimeError as error:
        raise_interrupt(error)
        raise


def _columns(connection: duckdb.DuckDBPyConnection, schema: pa.Schema) -> list[Column]:
    """Return the columns with DuckDB's types."""
    relation = connection.from_arrow(schema.empty_table())
    return list(zip(relation.columns, relation.types, strict=True))


def _hash_input(name: str, kind: sqltypes.DuckDBPyType, fraction: str) -> str:
    """Return the hash input of a column or list column. Casts go through DOUBLE: DECIMAL to REAL directly differs."""
    column = quote_part(name)
    if match := _WHOLE.fullmatch(str(kind)):
        return f"CAST({column} AS BIGINT{match[1]})"
    if match := _FRACTIONS.fullmatch(str(kind)):
        double = f"TRY_CAST({column} AS DOUBLE{match[1]})"
        return double if fraction == "DOUBLE" else f"TRY_CAST({double} AS {fraction}{match[1]})"
    return column
