"""Order of pinned rows: random, and a function of the rows and the seed alone, for every source.

A row's place is a hash of its values, of the number of equal rows before it (so that equal rows spread out), and of
the seed. Numbers with fractions count as REAL there, because the last digits of a parallel aggregate differ from run
to run; their exact values only order rows that are equal otherwise. DuckDB computes the order: in the query itself if
it is the source, else over the rows on their way into the file. Equal rows have equal places in both cases: whole
numbers are hashed as BIGINT, because databases store them in different widths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb import sqltypes

from edl.data.arrow_types import BATCH_ROWS, Watched, normalised
from edl.data.names import free_name, quoted
from edl.sources.duckdb.errors import raise_interrupt, while_reading

Column = tuple[str, sqltypes.DuckDBPyType]

_WHOLE = re.compile(r"U?(?:TINYINT|SMALLINT|INTEGER)((?:\[\d*\])*)")
_FRACTIONS = re.compile(r"(?:DOUBLE|FLOAT|DECIMAL\(\d+,\d+\))((?:\[\d*\])*)")


def shuffled(query: str, columns: Sequence[Column], seed: int, key: str = "") -> str:
    """Return a DuckDB query of the rows in the order determined by them and `seed`.

    `key` is a column that is not part of the rows; if given, only it is selected.
    """
    names = [name for name, _ in columns]
    values = quoted(key) if key else ", ".join(quoted(name) for name in names)
    rounded = ", ".join(_hashed(name, kind, "REAL") for name, kind in columns if name != key)
    doubles = ", ".join(_hashed(name, kind, "DOUBLE") for name, kind in columns if name != key)
    near, exact, nth = (quoted(free_name(name, names)) for name in ("near", "exact", "nth"))
    return (
        f"SELECT {values} FROM (SELECT *, row_number() OVER (PARTITION BY {near} ORDER BY {exact}) AS {nth}"
        f" FROM (SELECT *, hash({rounded}) AS {near}, hash({doubles}) AS {exact} FROM (\n{query}\n)))"
        f" ORDER BY hash({near}, {nth}, {int(seed)}::BIGINT), {near}, {nth}"
    )


@contextmanager
def shuffled_rows(reader: pa.RecordBatchReader, seed: int, folder: Path) -> Iterator[pa.RecordBatchReader]:
    """Yield the rows of a source other than DuckDB in that order, spilling to `folder`.

    Errors of the reader are passed on unchanged.
    """
    with _shuffled(reader, seed, folder, "", reader.schema) as rows:
        yield rows


@contextmanager
def shuffled_keys(
    reader: pa.RecordBatchReader, seed: int, folder: Path, key: str
) -> Iterator[pa.RecordBatchReader]:
    """Yield the column `key` of the rows, in the order determined by their other columns."""
    with _shuffled(reader, seed, folder, key, pa.schema([reader.schema.field(key)])) as keys:
        yield keys


@contextmanager
def _shuffled(
    reader: pa.RecordBatchReader, seed: int, folder: Path, key: str, schema: pa.Schema
) -> Iterator[pa.RecordBatchReader]:
    """Yield the ordered rows as a reader with `schema`."""
    watched = Watched(reader)
    with duckdb.connect(config={"temp_directory": str(folder / "shuffle")}) as connection:
        connection.register("incoming", pa.RecordBatchReader.from_batches(reader.schema, watched))
        query = shuffled("FROM incoming", _columns(connection, reader.schema), seed, key)
        yield pa.RecordBatchReader.from_batches(schema, _run(connection, query, watched, schema))


def _run(
    connection: duckdb.DuckDBPyConnection, query: str, watched: Watched, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    try:
        with watched.errors(duckdb.Error, pa.ArrowException, OSError):
            for batch in connection.sql(query).to_arrow_reader(BATCH_ROWS):
                yield normalised(batch, schema)
    except (duckdb.Error, pa.ArrowException) as error:
        raise while_reading(error) from None
    except RuntimeError as error:
        raise_interrupt(error)
        raise


def _columns(connection: duckdb.DuckDBPyConnection, schema: pa.Schema) -> list[Column]:
    """Return the columns with DuckDB's types."""
    relation = connection.from_arrow(schema.empty_table())
    return list(zip(relation.columns, relation.types, strict=True))


def _hashed(name: str, kind: sqltypes.DuckDBPyType, fraction: str) -> str:
    """Return the hash input of a column or list column. Casts go through DOUBLE: DECIMAL to REAL directly differs."""
    column = quoted(name)
    if match := _WHOLE.fullmatch(str(kind)):
        return f"CAST({column} AS BIGINT{match[1]})"
    if match := _FRACTIONS.fullmatch(str(kind)):
        double = f"TRY_CAST({column} AS DOUBLE{match[1]})"
        return double if fraction == "DOUBLE" else f"TRY_CAST({double} AS {fraction}{match[1]})"
    return column
