"""Values at paths of JSON texts, and records as such texts, by DuckDB in this process, a batch at a time."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.errors import SemanticError
from edl.features.arrays import Floats
from edl.spec import Computed

if TYPE_CHECKING:
    import duckdb

LONGEST = 80  # characters of a text in an error
_QUERY = """
WITH known AS (SELECT text, CASE WHEN json_valid(text) THEN text END AS valid FROM texts),
parts AS (SELECT *, json_type(valid, $path) AS kind, json_extract_string(valid, $path) AS value FROM known)
SELECT value, CASE kind WHEN 'BOOLEAN' THEN CAST(value = 'true' AS DOUBLE) ELSE TRY_CAST(value AS DOUBLE) END AS number,
    text IS NOT NULL AND valid IS NULL AS is_bad, coalesce(kind IN ('OBJECT', 'ARRAY'), FALSE) AS is_nested
FROM parts
"""
# Only the mark behind a key follows a letter: within a text there is a backslash before it, before a text a colon.
_WRITE = r"""
SELECT regexp_replace(to_json(value)::VARCHAR, '(\w":)(NaN|-?Infinity)', '\1null', 'g') AS text FROM records
"""

_connections: dict[int, duckdb.DuckDBPyConnection] = {}  # by the process that opened it
_opening = threading.Lock()


def texts(column: pa.Array, source: Computed) -> pa.Array:
    """Return the texts at the path, NULL where nothing is; a number or boolean is the text that JSON has for it.

    Raises SemanticError, with the text, for one that is no JSON, and for an object or a list.
    """
    return _read(column, source)["value"].combine_chunks()


def numbers(column: pa.Array, source: Computed) -> Floats:
    """Return the numbers at the path, float64 (n,), NaN where nothing is; a boolean is 1 or 0.

    Raises SemanticError as `texts` does, and for a text that is no number.
    """
    table = _read(column, source)
    other = pc.and_(pc.is_valid(table["value"]), pc.is_null(table["number"]))
    if (place := other.index(True).as_py()) >= 0:
        raise SemanticError(
            f"{source} holds {_shorten_text(table['value'][place].as_py())}, which is no number",
            hint=f"write VOCABULARIZE({source}) for a category",
        )
    values = table["number"].to_numpy()
    return np.asarray(values, dtype=np.float64)


def write_records(column: pa.Array) -> pa.Array:
    """Return records with letters at the ends of their keys, or lists of them, as JSON texts; a number that is not
    finite is null.
    """
    with _cursor() as cursor:
        cursor.register("records", pa.table({"value": column}))
        return cursor.sql(_WRITE).to_arrow_table()["text"].combine_chunks()


def _read(column: pa.Array, source: Computed) -> pa.Table:
    with _cursor() as cursor:
        cursor.register("texts", pa.table({"text": column.cast(pa.string())}))
        table = cursor.sql(_QUERY, params={"path": source.path}).to_arrow_table()
    if (place := table["is_bad"].index(True).as_py()) >= 0:
        raise SemanticError(
            f"{source.operands[0]} holds {_shorten_text(column[place].as_py())}, which is no JSON",
            hint="leave such rows out of the query; in TRAIN, train.on_bad_row = skip does",
        )
    if (place := table["is_nested"].index(True).as_py()) >= 0:
        raise SemanticError(
            f"{source} holds {_shorten_text(table['value'][place].as_py())}, which is no single value",
            hint="go on with the path to a text, a number or a boolean",
        )
    return table


def _cursor() -> duckdb.DuckDBPyConnection:
    """Return a cursor of the process's connection. A process that was forked has a connection of its own."""
    import duckdb

    process = os.getpid()
    with _opening:
        if process not in _connections:
            _connections.clear()
            _connections[process] = duckdb.connect(config={"threads": 1})
            atexit.register(_connections.clear)  # before the interpreter's end, which would report it as lost
    return _connections[process].cursor()


def _shorten_text(text: str) -> str:
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")
