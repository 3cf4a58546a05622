"""Rows of a report as an Arrow reader, the form of every result set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def texts(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> pa.RecordBatchReader:
    """Make a reader of text columns."""
    import pyarrow as pa

    return make_typed_reader(dict.fromkeys(names, pa.string()), rows)


def make_typed_reader(
    columns: Mapping[str, pa.DataType], rows: Iterable[Sequence[Any]]
) -> pa.RecordBatchReader:
    """Make a reader of columns by name and type."""
    import pyarrow as pa

    schema = pa.schema(list(columns.items()))
    names = list(columns)
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema).to_reader()
