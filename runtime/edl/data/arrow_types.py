"""Arrow types that pinned rows and results may have, and the conversion of batches to them.

Pinned rows and results hold plain columns whatever the database returns: no dictionaries, no string views, time zones
as UTC. A type that neither features nor result tables can use is rejected with the name of its column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.data.names import check_unique
from edl.errors import SourceError
from edl.spec import Field

BATCH_ROWS = 65_536

_DATABASE_TYPE, _INSTEAD = b"edl:type", b"edl:instead"  # metadata of a column of a query

_EXTENSION = b"ARROW:extension:name"
_KEPT = (
    pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
    pa.types.is_date, pa.types.is_time, pa.types.is_string, pa.types.is_binary, pa.types.is_fixed_size_binary,
    pa.types.is_duration, pa.types.is_interval,
)  # fmt: skip


def normal_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema that batches of `schema` have after `cast_batch`.

    Raises SourceError for a column of an unsupported type, or for two columns of one name (ignoring case).
    """
    check_unique(schema.names)
    return pa.schema([pa.field(field.name, _normal_field(field)) for field in schema])


def of_database(name: str, kind: pa.DataType, type_name: str, instead: str) -> pa.Field:
    """Describe a column of a type that only its database has, and that models cannot use.

    Its rows come as `kind`. type_name: the database's name of the type. instead: an expression that models can use.
    """
    return pa.field(name, kind, metadata={_DATABASE_TYPE: type_name.encode(), _INSTEAD: instead.encode()})


def database_type(field: pa.Field) -> tuple[str, str] | None:
    """Return the type's name and the expression of `of_database`, or None for another column."""
    metadata = field.metadata or {}
    name = metadata.get(_DATABASE_TYPE)
    return None if name is None else (name.decode(), metadata[_INSTEAD].decode())


def is_supported(field: pa.Field) -> bool:
    """Return True if `normal_schema` accepts the column."""
    return _find_supported_type(field) is not None


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast the batch to `schema`. Columns that already have their type are not copied."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def columns_and_batches(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the normal schema of a result, from its reader or first batch, and all batches in that schema."""
    iterator = iter(batches)
    if isinstance(batches, pa.RecordBatchReader):
        schema = normal_schema(batches.schema)
        return schema, (cast_batch(batch, schema) for batch in iterator)
    first = next(iterator, None)
    if first is None:
        raise SourceError("a result without a batch has no columns; stage an empty batch instead")
    schema = normal_schema(first.schema)
    return schema, (cast_batch(batch, schema) for part in ([first], iterator) for batch in part)


class Watched:
    """Batches on their way into a database. Keeps the producer's error; the database would wrap it."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.error: Exception | None = None
        self._batches = batches

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except Exception as error:
            self.error = error
            raise

    @contextmanager
    def errors(self, *wrapped: type[Exception]) -> Iterator[None]:
        """Raise the producer's error instead of the database's wrapper around it."""
        try:
            yield
        except wrapped:
            if self.error is not None:
                raise self.error from None
            raise


def rechunk_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of exactly `rows`, except for the last; never an empty batch."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        while batch.num_rows:
            taken = batch.slice(0, rows - count)
            batch = batch.slice(taken.num_rows)
            waiting.append(taken)
            count += taken.num_rows
            if count == rows:
                yield _join_batches(waiting, schema)
                waiting, count = [], 0
    if count:
        yield _join_batches(waiting, schema)


def zero_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with zeros under NULLs.

    Databases leave arbitrary bytes there, and equal rows must have equal bytes.
    """
    return pa.RecordBatch.from_arrays(
        [_zero_hidden_values(column) for column in batch.columns], schema=batch.schema
    )


def times_of_day(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parse texts such as 7:30:00.5 as times.

    Raises pa.ArrowInvalid for 24 hours or more, or a text that is no time.
    """
    at = pc.binary_join_element_wise("1970-01-01", texts, " ")
    return at.cast(pa.timestamp(kind.unit)).cast(kind)


def plain_name(kind: pa.DataType) -> str:
    """Return the name of a type without its width and unit: date, decimal, list."""
    return re.split("[^a-z]", str(kind))[0]


def fields(schema: pa.Schema) -> tuple[Field, ...]:
    """Return the schema in the form that a JobSpec stores."""
    return tuple(Field(field.name, str(field.type)) for field in schema)


def schema_of(stored: Iterable[Field]) -> pa.Schema:
    """Return the schema that `fields` described. Raises SourceError for a type that no JobSpec stores."""
    return pa.schema([pa.field(field.name, _type_named(field.type)) for field in stored])


_DECIMAL = re.compile(r"decimal(?:32|64|128|256)\((\d+), (-?\d+)\)")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]")
_LIST = re.compile(r"(?:fixed_size_list|large_list|list)<\w+: (.+?)(?: not null)?>(?:\[(\d+)\])?")
_BINARY = re.compile(r"fixed_size_binary\[(\d+)\]")


def _type_named(text: str) -> pa.DataType:
    """Return the Arrow type that `str` wrote: numbers, texts, times, and lists of them."""
    if match := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(match[1]), int(match[2]))
    if match := _ZONED.fullmatch(text):
        return pa.timestamp(match[1], match[2])
    if match := _BINARY.fullmatch(text):
        return pa.binary(int(match[1]))
    if match := _LIST.fullmatch(text):
        return pa.list_(_type_named(match[1]), int(match[2] or -1))
    try:
        return pa.type_for_alias(text)
    except ValueError:
        raise SourceError(f"{text} is not a type of a column that a model can read") from None


def _normal_field(field: pa.Field) -> pa.DataType:
    kind = _find_supported_type(field)
    if kind is None:
        metadata = field.metadata or {}
        shown = metadata.get(_EXTENSION, str(field.type).encode()).decode()
        name = field.name if field.name.isidentifier() else "…"
        raise SourceError(
            f"column {field.name} is of the type {shown}, which cannot be used",
            hint=f"cast it in the SELECT, for example CAST({name} AS VARCHAR)",
        )
    return kind


def _normal(kind: pa.DataType) -> pa.DataType | None:
    """Return the type for a conversion of columns of type `kind`, or None if the type is not supported."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _normal(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC" if kind.tz else None)
    if any(is_kept(kind) for is_kept in _KEPT):
        return kind
    return _normal_nested(kind)


def _normal_nested(kind: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if types.is_struct(kind):
        inner = [(field.name, _find_supported_type(field)) for field in kind]
        return pa.struct(inner) if all(value is not None for _, value in inner) else None
    if types.is_map(kind):
        key, value = _find_supported_type(kind.key_field), _find_supported_type(kind.item_field)
        return pa.map_(key, value) if key is not None and value is not None else None
    if types.is_fixed_size_list(kind):
        value = _find_supported_type(kind.value_field)
        return pa.list_(value, kind.list_size) if value is not None else None
    if types.is_list(kind) or types.is_large_list(kind):
        value = _find_supported_type(kind.value_field)
        return pa.list_(value) if value is not None else None
    return None


def _find_supported_type(field: pa.Field) -> pa.DataType | None:
    return _normal(field.type) if _EXTENSION not in (field.metadata or {}) else None


def _join_batches(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    joined = pa.Table.from_batches(batches, schema=schema).combine_chunks().to_batches()
    if len(joined) != 1:
        raise SourceError(
            f"{sum(batch.num_rows for batch in batches):,} rows hold more than 2 GB of text in one column",
            hint="shorten the text in the SELECT, for example substr(text, 1, 10000)",
        )
    return joined[0]


def _zero_hidden_values(column: pa.Array) -> pa.Array:
    if pa.types.is_nested(column.type):
        return _zeroed_nested(_copy_column(column))
    return _copy_column(column) if column.null_count and not pa.types.is_null(column.type) else column


def _copy_column(column: pa.Array) -> pa.Array:
    """Copy the column to offset 0.

    `take` at a NULL index is the one kernel that writes zeros under NULLs of every type.
    """
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    return column.take(pa.array(np.arange(len(column)), mask=nulls))


def _zeroed_nested(column: pa.Array) -> pa.Array:
    kind = column.type
    mask = column.is_null() if column.null_count else None
    if pa.types.is_struct(kind):
        inner = [_zero_hidden_values(column.field(index)) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        keys, items = _zero_hidden_values(column.keys), _zero_hidden_values(column.items)
        return pa.MapArray.from_arrays(column.offsets, keys, items, type=kind, mask=mask)
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(_zero_hidden_values(column.values), type=kind, mask=mask)
    return pa.ListArray.from_arrays(column.offsets, _zero_hidden_values(column.values), type=kind, mask=mask)
