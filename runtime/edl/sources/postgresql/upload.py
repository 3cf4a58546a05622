"""Upload of rows to PostgreSQL: the text of whole columns at a time, sent by COPY."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.types as types

from edl.data.displayed_rows import has_python_values, texts
from edl.data.names import quote_part
from edl.errors import SourceError
from edl.sources.postgresql.connection import PostgreSQLConnection

LONGEST_NAME = 63  # bytes; the server cuts a longer name short in silence

_CHUNK_BYTES = 8 << 20  # of Arrow data that are one text
_WRITING = csv.WriteOptions(include_header=False, quoting_style="needed")
_DIGITS = 1000  # of a numeric

# Arrow type -> column type
_STORED = (
    (types.is_boolean, "boolean"),
    (types.is_int8, "smallint"),
    (types.is_uint8, "smallint"),
    (types.is_int16, "smallint"),
    (types.is_uint16, "integer"),
    (types.is_int32, "integer"),
    (types.is_uint32, "bigint"),
    (types.is_int64, "bigint"),
    (types.is_uint64, "numeric(20, 0)"),
    (types.is_float64, "double precision"),
    (types.is_floating, "real"),
    (types.is_date, "date"),
    (types.is_time, "time"),
    (types.is_duration, "bigint"),
    (types.is_string, "text"),
    (types.is_binary, "bytea"),
    (types.is_fixed_size_binary, "bytea"),
    (types.is_null, "text"),
)
_ARRAY_ESCAPES = (("\\", "\\\\"), ('"', '\\"'))


def declare_type(field: pa.Field) -> str:
    """Return the type of a column for the field. Raises SourceError if PostgreSQL has none."""
    kind = field.type
    is_list = types.is_list(kind) or types.is_fixed_size_list(kind)
    name = _find_type(kind.value_type if is_list else kind)
    if name is None:
        raise SourceError(
            f"column {field.name} is of the type {kind}, which PostgreSQL cannot hold",
            hint="leave it out, or make it a text",
        )
    return f"{name}[]" if is_list else name


def check_names(names: Iterable[str]) -> None:
    """Raise SourceError for a name that the server would cut short, or cannot hold."""
    for name in names:
        if len(name.encode()) > LONGEST_NAME or "\0" in name:
            raise SourceError(
                f"{name} cannot be a name in PostgreSQL", hint=f"write one of at most {LONGEST_NAME} bytes"
            )


def definitions(schema: pa.Schema) -> list[str]:
    """Return the columns of a new table. Raises SourceError for one that PostgreSQL cannot have."""
    check_names(schema.names)
    return [f"{quote_part(field.name)} {declare_type(field)}" for field in schema]


def write(
    connection: PostgreSQLConnection, table: str, names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> None:
    """Append batches with columns `names` to the table of this quoted name."""
    columns = ", ".join(map(quote_part, names))
    connection.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT csv)", _texts(batches))


def _texts(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        rows = max(1, batch.num_rows * _CHUNK_BYTES // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, rows):
            yield _text(batch.slice(start, rows))


def _text(batch: pa.RecordBatch) -> bytes:
    """Return the rows as CSV: NULL is an empty field, and every text has quotation marks."""
    columns = [_convert_column(column) for column in batch.columns]
    sink = io.BytesIO()
    names = [str(number) for number in range(len(columns))]
    csv.write_csv(pa.RecordBatch.from_arrays(columns, names), sink, _WRITING)
    return sink.getvalue()


def _convert_column(column: pa.Array) -> pa.Array:
    """Convert the column to a type with PostgreSQL's text in CSV."""
    kind = column.type
    if types.is_binary(kind) or types.is_fixed_size_binary(kind):
        return _hexadecimal(column)
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return _lists(column)
    if types.is_duration(kind):
        return column.cast(pa.int64())
    if (types.is_date(kind) or types.is_timestamp(kind)) and not has_python_values(column):
        return pc.replace_substring(texts(column), "(BC)", "BC")
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    if types.is_time(kind):
        return column.cast(pa.time64("us"), safe=False)
    return column


def _hexadecimal(column: pa.Array) -> pa.Array:
    r"""Return each value as \x and two digits per byte."""
    column = column.cast(pa.large_binary())
    numbers = pa.Array.from_buffers(
        pa.int64(), len(column) + 1, [None, column.buffers()[1]], offset=column.offset
    )
    start, end = numbers[0].as_py(), numbers[-1].as_py()
    digits = bytes(column.buffers()[2] or b"")[start:end].hex().encode()
    doubled = pc.multiply(pc.subtract(numbers, start), 2)
    texts = pa.Array.from_buffers(
        pa.large_string(), len(column), [None, doubled.buffers()[1], pa.py_buffer(digits)]
    )
    shown = pc.binary_join_element_wise(
        pa.scalar("\\x", pa.large_string()), texts, pa.scalar("", pa.large_string())
    )
    return pc.if_else(column.is_valid(), shown, pa.scalar(None, pa.large_string()))


def _lists(column: pa.Array) -> pa.Array:
    """Return each list as PostgreSQL writes an array: {1,2,NULL}."""
    if types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    values = column.flatten()
    texts = _convert_column(values).cast(pa.string())
    if types.is_string(values.type) or types.is_binary(values.type):
        for plain, escape in _ARRAY_ESCAPES:
            texts = pc.replace_substring(texts, plain, escape)
        texts = pc.binary_join_element_wise(pa.scalar('"'), texts, pa.scalar('"'), pa.scalar(""))
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, pc.fill_null(texts, "NULL")), ",")
    shown = pc.binary_join_element_wise(pa.scalar("{"), joined, pa.scalar("}"), pa.scalar(""))
    return pc.if_else(column.is_valid(), shown, pa.scalar(None, pa.string()))


def _find_type(kind: pa.DataType) -> str | None:
    if types.is_decimal(kind):
        fits = kind.precision <= _DIGITS and 0 <= kind.scale <= kind.precision
        return f"numeric({kind.precision}, {kind.scale})" if fits else None
    if types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    return next((name for fits, name in _STORED if fits(kind)), None)
