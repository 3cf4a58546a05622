"""Order of pinned rows: random, and a function of the rows and the seed alone, for every source.

A row's place is a hash of its values, of the number of equal rows before it (so that equal rows spread out), and of
the seed. Numbers with fractions count as REAL there, because the last digits of a parallel aggregate differ from run
to run; their exact values only order rows that are equal otherwise. DuckDB computes the order: in the query itself if
it is the source, else over the rows on their way into the file. Equal rows have equal places in both cases: whole
numbers are hashed as BIGINT, because databases store them in different widths.

With a split, the validation rows come after the others. Whole units are on one side: equal rows, the rows of a group,
or the rows of one time. They are taken in the order of a hash of unit and seed, the latest time first, until the
fraction is reached; units that are larger than the fraction come last in that order. A column that marks them has no
units.

Equal rows are copies of one observation in most tables. They are observations of their own, and each is a unit, where
the rows have few values: `ROWS_PER_VALUE` rows for each different row, or different labels in the share `SCATTERED` of
the rows that equal others in all other columns. Otherwise a category and its label would be on one side only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from duckdb import sqltypes

from edl.data.arrow_types import BATCH_ROWS, Watched, cast_batch
from edl.data.names import free_name, quote_part
from edl.data.pinned import pin_rows
from edl.data.source import Pinned
from edl.sources.duckdb.engine import open_database
from edl.sources.duckdb.errors import raise_interrupt, while_reading
from edl.spec import Split

Column = tuple[str, sqltypes.DuckDBPyType]

ROWS_PER_VALUE = 20
SCATTERED = 0.1

# Subqueries: all rows; whether equal ones are observations of their own; all units with their classes and sizes;
# the units of validation rows.
_GIVEN, _SEPARATE = "sqlflow_edl_given", "sqlflow_edl_separate"
_UNITS, _HELD = "sqlflow_edl_units", "sqlflow_edl_held"
_WHOLE = re.compile(r"U?(?:TINYINT|SMALLINT|INTEGER)((?:\[\d*\])*)")
_FRACTIONS = re.compile(r"(?:DOUBLE|FLOAT|DECIMAL\(\d+,\d+\))((?:\[\d*\])*)")


def shuffle_query(
    query: str, columns: Sequence[Column], seed: int, key: str = "", split: Split | None = None
) -> str:
    """Return a DuckDB query of the rows in the order determined by them and `seed`.

    `key` is a column that is not part of the rows; if given, only it is selected. With a split, the last column is
    true for validation rows.
    """
    names = [name for name, _ in columns]
    values = quote_part(key) if key else ", ".join(quote_part(name) for name in names)
    rounded = ", ".join(_hash_input(name, kind, "REAL") for name, kind in columns if name != key)
    doubles = ", ".join(_hash_input(name, kind, "DOUBLE") for name, kind in columns if name != key)
    near, exact, nth, size = (quote_part(free_name(name, names)) for name in ("near", "exact", "nth", "size"))
    hashed = f"SELECT *, hash({rounded}) AS {near}, hash({doubles}) AS {exact} FROM (\n{query}\n)"
    order = f"hash({near}, {nth}, {int(seed)}::BIGINT), {near}, {nth}"
    number = f"row_number() OVER (PARTITION BY {near} ORDER BY {exact}) AS {nth}"
    if split is None:
        return f"SELECT {values} FROM (SELECT *, {number} FROM ({hashed})) ORDER BY {order}"
    mark = quote_part(free_name("held", names))
    if split.by == "column":
        marked = f"SELECT *, coalesce({quote_part(split.column)}::BOOLEAN, true) AS {mark}, {number} FROM ({hashed})"
        return f"SELECT {values}, {mark} FROM ({marked}) ORDER BY {mark}, {order}"
    features = quote_part(free_name("features", names))
    others = [(name, kind) for name, kind in columns if name != split.column or split.by in ("time", "group")]
    rounded = ", ".join(_hash_input(name, kind, "REAL") for name, kind in others if name != key)
    # before the windows, which then need not keep columns that nothing else selects
    hashed = f"SELECT *, {f'hash({rounded})' if rounded else 0} AS {features} FROM ({hashed})"
    numbered = f"SELECT *, {number}, count(*) OVER (PARTITION BY {near}) AS {size} FROM ({hashed})"
    unit, kind = _unit(split, near, nth, dict(columns))
    # Equal rows have one unit, the first row's, so only units of several different rows are grouped.
    if split.by in ("time", "group"):
        units = f"SELECT {unit} AS unit, {kind} AS kind, count(*) AS size FROM {_GIVEN} GROUP BY ALL"
    else:
        units = (
            f"SELECT {unit} AS unit, {kind} AS kind, CASE WHEN (FROM {_SEPARATE}) THEN 1 ELSE {size} END AS size"
            f" FROM {_GIVEN} WHERE (FROM {_SEPARATE}) OR {nth} = 1"
        )
    is_held = f"{unit} IN (FROM {_HELD})"  # a unit is of one class
    return (
        f"WITH {_GIVEN} AS MATERIALIZED ({numbered}),"
        f" {_SEPARATE} AS MATERIALIZED ({_separate(nth, size, features)}),"
        f" {_UNITS} AS MATERIALIZED ({units}),"
        f" {_HELD} AS ({_validation_units_query(split, seed)})"
        f" SELECT {values}, {mark} FROM (SELECT *, coalesce({is_held}, false) AS {mark} FROM {_GIVEN})"
        f" ORDER BY {mark}, {order}"
    )


def _unit(split: Split, near: str, nth: str, kinds: Mapping[str, sqltypes.DuckDBPyType]) -> tuple[str, str]:
    """Return the expressions of a row's unit, and of the class within which units are taken."""
    row = f"CASE WHEN (FROM {_SEPARATE}) THEN hash({near}, {nth}) ELSE {near} END"
    if split.by == "random":
        return row, "0"
    column, kind = quote_part(split.column), kinds[split.column]
    if split.by == "time":
        fractional = str(kind) in ("DOUBLE", "FLOAT")
        return (f"CASE WHEN isfinite({column}) THEN {column} END" if fractional else column), "0"
    value = f"hash({_hash_input(split.column, kind, 'REAL')})"
    return (value, "0") if split.by == "group" else (row, value)


def _separate(nth: str, size: str, features: str) -> str:
    """Return a query of one value: whether equal rows are observations of their own."""
    equals = (
        f"SELECT sum({size}) AS size, count(*) AS kinds FROM {_GIVEN} WHERE {nth} = 1 GROUP BY {features}"
    )
    scattered = "sum(size) FILTER (kinds > 1)"
    copied = "sum(size) FILTER (size > 1)"
    return (
        f"SELECT coalesce(sum(size) >= {ROWS_PER_VALUE} * sum(kinds)"
        f" OR {scattered} >= {SCATTERED!r}::DOUBLE * {copied}, false) FROM ({equals})"
    )


def _validation_units_query(split: Split, seed: int) -> str:
    """Return a query of the units of validation rows."""
    least = "CASE WHEN total > 1 THEN 1 ELSE 0 END" if split.by == "stratified" else "0"
    count = f"greatest(floor(total * {float(split.fraction)!r}::DOUBLE + 0.5), {least})"
    order = (
        "unit DESC NULLS LAST"
        if split.by == "time"
        else f"size > wanted, hash(unit, {int(seed)}::BIGINT), unit"
    )
    totals = f"SELECT kind, sum(size) AS total, sum(sum(size)) OVER () AS rows FROM {_UNITS} GROUP BY kind"
    classes = "PARTITION BY kind" if split.by == "stratified" else ""
    ends = f"sum(size) OVER ({classes} ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS last"
    placed = f"SELECT *, {ends} FROM (SELECT *, {count} AS wanted FROM {_UNITS} JOIN ({totals}) USING (kind))"
    # The unit that reaches the fraction is taken if that is nearer to it, the first one always, the last one never.
    nearer = "(last = size OR last - wanted <= wanted - (last - size))"
    return (
        f"SELECT unit FROM ({placed})"
        f" WHERE rows >= {int(split.fewest)} AND last - size < wanted AND last < total AND {nearer}"
    )


class OrderedRows:
    """Rows in their pinned order, without the mark of validation rows, which are counted on the way.

    The generator must not refer to this object: Arrow, which holds it, is not searched for cycles.
    """

    def __init__(self, reader: pa.RecordBatchReader, split: Split | None = None) -> None:
        self._held: list[int] | None = None if split is None else []
        self.reader = reader
        if self._held is not None:
            schema = pa.schema(list(reader.schema)[:-1])
            self.reader = pa.RecordBatchReader.from_batches(schema, _without_mark(reader, self._held))

    @property
    def validation(self) -> int | None:
        """Number of validation rows once all rows were read; None without a split."""
        return None if self._held is None else sum(self._held)

    def pinned(self, folder: Path, *, source: str, select: str, seed: int, shuffled: bool) -> Pinned:
        """Pin the rows in a file of the folder."""
        record = pin_rows(folder, self.reader, source=source, select=select, seed=seed, shuffled=shuffled)
        return msgspec.structs.replace(record, validation=self.validation)


def _without_mark(reader: pa.RecordBatchReader, held: list[int]) -> Iterator[pa.RecordBatch]:
    """Yield the batches without their last column; add the number of rows that it marks to `held`."""
    for batch in reader:
        held.append(pc.sum(batch.columns[-1]).as_py() or 0)
        yield batch.select(range(batch.num_columns - 1))


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
    if split is not None:
        schema = schema.append(pa.field(free_name("held", schema.names), pa.bool_()))
    with open_database(temporary=folder / "shuffle") as connection:
        connection.register("incoming", pa.RecordBatchReader.from_batches(reader.schema, watched))
        query = shuffle_query("FROM incoming", _columns(connection, reader.schema), seed, key, split)
        rows = _run(connection, query, watched, schema)
        yield OrderedRows(pa.RecordBatchReader.from_batches(schema, rows), split)


def _run(
    connection: duckdb.DuckDBPyConnection, query: str, watched: Watched, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    try:
        with watched.errors(duckdb.Error, pa.ArrowException, OSError):
            for batch in connection.sql(query).to_arrow_reader(BATCH_ROWS):
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
