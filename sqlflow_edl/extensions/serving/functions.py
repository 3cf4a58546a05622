"""SQL functions of a caller's own DuckDB or SQLite connection that predict with a model in memory.

DuckDB calls a function with some thousand rows at a time, as Arrow columns; SQLite with one row. The arguments are the
model's columns, in the order of its features.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as types

from edl.data import open_beside
from edl.data.arrow_types import cast_batch, normal_schema
from edl.data.names import quote_part
from edl.errors import SemanticError, SourceError, SQLFlowError
from edl.models.registry.base import Registry
from edl.models.registry.factory import open_registry
from sqlflow_edl.extensions.serving.model import ServedModel, load_model
from sqlflow_edl.extensions.serving.rows import to_column

if TYPE_CHECKING:
    from edl.data.url import Connection

ALL = "_all"  # end of the name of the function that gives all predicted columns
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES = (
    (types.is_boolean, "BOOLEAN"),
    (types.is_int8, "TINYINT"),
    (types.is_int16, "SMALLINT"),
    (types.is_int32, "INTEGER"),
    (types.is_int64, "BIGINT"),
    (types.is_uint8, "UTINYINT"),
    (types.is_uint16, "USMALLINT"),
    (types.is_uint32, "UINTEGER"),
    (types.is_uint64, "UBIGINT"),
    (types.is_float32, "FLOAT"),
    (types.is_floating, "DOUBLE"),
    (types.is_string, "VARCHAR"),
    (types.is_date, "DATE"),
    (types.is_time, "TIME"),
    (types.is_binary, "BLOB"),
    (types.is_fixed_size_binary, "BLOB"),
    (types.is_duration, "INTERVAL"),
    (types.is_null, "VARCHAR"),
)


def register_model(
    connection: Connection, model: str | Path, name: str, registry: Registry | None
) -> tuple[str, ...]:
    """Load the model and add its functions to the connection. Return their names; see `sqlflow_edl.register`."""
    if isinstance(model, Path):
        loaded = load_model(model)
    else:
        loaded = _load_model(model, registry) if registry is not None else _open_own_model(connection, model)
    name = name or _name(loaded.reference)
    if not _PLAIN.fullmatch(name):
        raise SemanticError(f"{name!r} cannot name a function", hint="use letters, digits and _")
    add = _add_to_sqlite if isinstance(connection, sqlite3.Connection) else _add_to_duckdb
    add(connection, loaded, name)
    return (name, name + ALL)


# Models ----------------------------------------------------------------------------------------------------


def _load_model(model: str, registry: Registry) -> ServedModel:
    with registry.fetch(model) as (version, archive):
        return load_model(archive, version.reference)


def _open_own_model(connection: Connection, model: str) -> ServedModel:
    """Return a model of the connection's own database, by a connection beside it."""
    try:
        with open_beside(connection) as source:
            return _load_model(model, open_registry(source))
    except SourceError as error:
        error.hint = "name where the model is: register(connection, model, source=session)"
        raise


def _name(reference: str) -> str:
    """Return the name of a function for a model without its version: predict_m for m@1."""
    bare = Path(reference).stem if reference.endswith(".zip") else reference.rpartition("@")[0] or reference
    return "predict_" + re.sub(r"\W", "_", bare, flags=re.ASCII)


# DuckDB ----------------------------------------------------------------------------------------------------


def _add_to_duckdb(connection: Any, model: ServedModel, name: str) -> None:
    import duckdb

    results = model.results
    parameters = [_duckdb_type(field) for field in model.schema]
    one = _duckdb_type(results.field(0))
    every = (
        "STRUCT(" + ", ".join(f"{quote_part(field.name)} {_duckdb_type(field)}" for field in results) + ")"
    )
    for function, returns, answer in ((name, one, _first_column), (name + ALL, every, _struct)):
        with suppress(duckdb.InvalidInputException, duckdb.CatalogException):  # there is none
            connection.remove_function(function)
        connection.create_function(
            function,
            _vectorise(model, answer),
            parameters,
            duckdb.sqltype(returns),
            type="arrow",
            null_handling="special",
        )


def _vectorise(model: ServedModel, answer: Callable[[pa.RecordBatch], pa.Array]) -> Callable[..., pa.Array]:
    names = model.schema.names

    def predict(*columns: Any) -> pa.Array:
        plain = [
            column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns
        ]
        batch = pa.RecordBatch.from_arrays(plain, names=names)
        return answer(model.predictor.predict(cast_batch(batch, normal_schema(batch.schema))))

    # DuckDB looks at the signature for the number of arguments.
    arguments = [Parameter(f"c{number}", Parameter.POSITIONAL_ONLY) for number in range(len(names))]
    predict.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    return predict


def _first_column(predicted: pa.RecordBatch) -> pa.Array:
    return predicted.column(0)


def _struct(predicted: pa.RecordBatch) -> pa.Array:
    return pa.StructArray.from_arrays(predicted.columns, fields=list(predicted.schema))


def _duckdb_type(field: pa.Field) -> str:
    """Return the type of DuckDB. Raises SemanticError for a type that DuckDB does not have."""
    kind = field.type
    if types.is_timestamp(kind):
        return (
            "TIMESTAMPTZ"
            if kind.tz
            else {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "ns": "TIMESTAMP_NS"}.get(kind.unit, "TIMESTAMP")
        )
    if types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if types.is_fixed_size_list(kind):
        return f"{_duckdb_type(kind.value_field)}[{kind.list_size}]"
    if types.is_list(kind):
        return f"{_duckdb_type(kind.value_field)}[]"
    type_name = next((name for is_kind, name in _TYPES if is_kind(kind)), None)
    if type_name is None:
        raise SemanticError(
            f"column {field.name} is of the type {kind}, which a function of DuckDB cannot take"
        )
    return type_name


# SQLite ----------------------------------------------------------------------------------------------------


def _add_to_sqlite(connection: Any, model: ServedModel, name: str) -> None:
    fields = list(model.schema)

    def predicted(*values: object) -> pa.RecordBatch:
        columns = [to_column([value], field) for value, field in zip(values, fields, strict=True)]
        return model.predictor.predict(pa.RecordBatch.from_arrays(columns, names=model.schema.names))

    def one(*values: object) -> object:
        return _sqlite_value(predicted(*values).column(0)[0].as_py())

    def every(*values: object) -> str:
        (row,) = predicted(*values).to_pylist()
        return json.dumps(row, ensure_ascii=False)

    for function, call in ((name, one), (name + ALL, every)):
        connection.create_function(function, len(fields), _printing_errors(call), deterministic=True)


def _printing_errors(call: Callable[..., object]) -> Callable[..., object]:
    """Return the function with its errors on stderr: SQLite reports that there was one, and nothing else."""

    def function(*values: object) -> object:
        try:
            return call(*values)
        except SQLFlowError as error:
            print(f"error: {error.message}", file=sys.stderr)
            raise

    return function


def _sqlite_value(value: object) -> object:
    """Return a value of SQLite: it has no truths, dates or times."""
    if isinstance(value, bool):
        return int(value)
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value
