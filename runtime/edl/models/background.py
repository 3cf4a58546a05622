"""Background rows of a model: a few rows of its training, with which EXPLAIN compares the rows that it explains.

The archive holds them as an Arrow stream of the columns that the model reads, in the order of `JobSpec.columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from edl.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "background.arrow"  # in the archive
MOST_ROWS = 10_000  # that are read back


def to_bytes(rows: pa.RecordBatch) -> bytes:
    """Return the rows as an Arrow stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def from_bytes(data: bytes) -> pa.RecordBatch:
    """Return the rows, with checked values. Raises SpecError if they are damaged."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(data) as reader:
            [rows] = list(reader)
        rows.validate(full=True)
        names = rows.schema.names  # which are decoded here
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SpecError(f"the archive's {FILE} is damaged: {error}") from None
    if not 0 < rows.num_rows <= MOST_ROWS or len(set(names)) < len(names):
        raise SpecError(
            f"the archive's {FILE} is damaged: it has {rows.num_rows:,} rows, or two columns of one name"
        )
    return rows


def over_columns(rows: pa.RecordBatch, columns: Sequence[str], schema: pa.Schema) -> pa.RecordBatch | None:
    """Return the rows under the names and types of the columns of a query, in which the model's columns stand in the
    same order; None if they have no such form.
    """
    import pyarrow as pa

    if rows.num_columns != len(columns):
        return None
    try:
        values = [
            _cast(values, schema.field(name).type) for name, values in zip(columns, rows.columns, strict=True)
        ]
    except (pa.ArrowException, KeyError):
        return None
    return pa.RecordBatch.from_arrays(values, names=list(columns))


def _cast(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the values in a column's type. Numbers with a fraction stay what they are where the column has none."""
    import pyarrow as pa

    if pa.types.is_floating(values.type) and pa.types.is_integer(type_):
        return values
    return values.cast(type_, safe=False)
