"""Rows of a statement as they are shown: every value of every type of every database has a cell.

Columns keep their Arrow types. A column becomes text from the first batch on in which a value has no place in its type:
an infinite date, a year that Python does not have, 24:00, an interval. Such a value is the database's own text; the
others are texts as `edl.data.cells.cell` formats them. So rows are shown as they come, and only who needs one type for
a whole column (a table of Arrow, a Parquet file) unites the types of its batches.

Jobs never read rows this way: their sources raise an error that names the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.data.arrow_types import BATCH_ROWS, plain_name
from edl.data.cells import cell
from edl.errors import SourceError

_DAY = 86_400
_FIRST, _END = -719_162 * _DAY, 2_932_897 * _DAY  # seconds: 0001-01-01, and the day after 9999-12-31
_IN_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class DisplayedRows:
    """Rows of a result, read once, batch by batch. Fulfils what `pa.RecordBatchReader` does for its readers.

    `schema` has the types of the first batch. `batches` may have text in place of a type of `schema`.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._declared = schema
        self._batches = map(_with_texts, batches)
        self._close = close
        self._begun = False
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns. Reads the first batch."""
        if not self._begun:
            self._begun = True
            if (first := next(self._batches, None)) is not None:
                self._schema = first.schema
                self._batches = chain([first], self._batches)  # type: ignore[assignment]
        return self._schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        self._begun = True
        return next(self._batches)

    read_next_batch = __next__

    def read_all(self) -> pa.Table:
        """Return the rest of the rows, each column of one type."""
        return unite_batches(list(self), self.schema)

    def texts_note(self, schema: pa.Schema) -> str:
        """Name the columns that are text in a file of `schema`, and the reason; empty if none is."""
        reasons = [
            f"{declared.name} is text: {_reason(declared.type, shown.type)}"
            for declared, shown, stored in zip(self._declared, self.schema, schema, strict=True)
            if types.is_string(stored.type) and not types.is_string(declared.type)
        ]
        return "; ".join(reasons)

    def read_pandas(self) -> Any:
        return self.read_all().to_pandas()

    def close(self) -> None:
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to a reader of Arrow streams, such as `polars.DataFrame`, which takes one schema."""
        return self.read_all().__arrow_c_stream__(requested_schema)


def as_displayed_rows(rows: Any) -> DisplayedRows:
    """Return the rows of a `pa.RecordBatchReader`, or of what is one already, as they are shown."""
    return rows if isinstance(rows, DisplayedRows) else DisplayedRows(rows.schema, rows, rows.close)


def join_small_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Join small batches to ones of about `BATCH_ROWS` rows."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS:
            yield from unite_batches(waiting, schema).combine_chunks().to_batches()
            waiting, rows = [], 0
    yield from unite_batches(waiting, schema).combine_chunks().to_batches()


def unite_batches(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return the batches as one table. A column that is text in one of them is text in all."""
    fields, columns = [], []
    for place, field in enumerate(schema):
        arrays = [batch.column(place) for batch in batches]
        kind = common_type({array.type for array in arrays}) or field.type
        columns.append(pa.chunked_array([as_type(array, kind) for array in arrays], kind))
        fields.append(field if field.type == kind else pa.field(field.name, kind))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert the column to a type that has all its values; to text as it is shown."""
    if column.type == kind:
        return column
    return texts(column) if types.is_string(kind) else column.cast(kind)


def text_where_unfit(
    values: Any, convert: Callable[[pa.Array], pa.Array], text: Callable[[Any], str | None]
) -> pa.Array:
    """Convert values of a database, an array or a sequence; if one does not fit, return the texts of all.

    `convert` raises one of `CONVERSION_ERRORS`. `text` is the database's own text of a value.
    """
    if (converted := _fitting(values, convert)) is not None:
        return converted
    if not isinstance(values, pa.Array):
        return pa.array(list(_halves(values, convert, text)), pa.string())
    distinct = values.dictionary_encode()
    return pa.array(list(_halves(distinct.dictionary, convert, text)), pa.string()).take(distinct.indices)


CONVERSION_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError, SourceError)


def has_python_values(column: pa.Array) -> bool:
    """Return True if Python's types have all values of the column, except for nanoseconds."""
    return _mask_odd(column) is None


def python_values(column: pa.Array) -> list[Any]:
    """Return the values as Python's; texts if Python's types do not have all of them."""
    if types.is_float32(column.type) or types.is_float16(column.type):  # 0.1, not 0.10000000149011612
        column = column.cast(pa.string()).cast(pa.float64())
    elif _mask_odd(column, finest=1000) is not None:
        column = texts(column)
    elif types.is_timestamp(column.type) and column.type.unit == "ns":  # without pandas' own class
        column = column.cast(pa.timestamp("us", column.type.tz))
    return column.to_pylist()  # type: ignore[no-any-return]


def texts(column: pa.Array) -> pa.Array:
    """Return the cells of a column. A value that Python does not have is written by DuckDB."""
    odd = _mask_odd(column, finest=1000)
    if odd is None:
        return pa.array(
            [None if value is None else cell(value) for value in python_values(column)], pa.string()
        )
    if odd.all():
        return pa.array(_written_by_duckdb(column), pa.string())
    by_duckdb = iter(_written_by_duckdb(column.filter(pa.array(odd))))
    others = iter(python_values(column.filter(pa.array(~odd))))
    values = (next(by_duckdb) if is_odd else next(others) for is_odd in odd)
    return pa.array([None if value is None else cell(value) for value in values], pa.string())


def _with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with texts in place of columns that have a value out of the range of Python's type."""
    for place, field in enumerate(batch.schema):
        if _mask_odd(batch.column(place)) is not None:
            field = pa.field(field.name, pa.string())
            batch = batch.set_column(place, field, texts(batch.column(place)))
    return batch


def _mask_odd(column: pa.Array, finest: int = 1) -> Any:
    """Return a mask of the values that Python does not have, or None without one.

    finest: nanoseconds of which times of Python must be multiples.
    """
    kind = column.type
    if types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind):
        return _out_of_range(column, finest)
    if types.is_dictionary(kind):
        return _mask_odd(column.dictionary_decode(), finest)
    if types.is_interval(kind) or types.is_union(kind):
        return np.ones(len(column), bool)
    if types.is_nested(kind):
        is_odd = any(_mask_odd(part, finest) is not None for part in _parts(column))
        return np.ones(len(column), bool) if is_odd else None
    return None


def _parts(column: pa.Array) -> list[pa.Array]:
    if types.is_struct(column.type):
        return column.flatten()  # type: ignore[no-any-return]
    if types.is_map(column.type):
        return [column.keys, column.items]
    return [column.flatten()]


def _out_of_range(column: pa.Array, finest: int) -> Any:
    kind = column.type
    numbers = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if types.is_date(kind):
        per_second, unit = (1, _DAY) if types.is_date32(kind) else (1000, 1)
    else:
        per_second, unit = _IN_SECOND[kind.unit], 1
    first, end = (0, _DAY) if types.is_time(kind) else (_FIRST, _END)
    if types.is_timestamp(kind) and kind.tz not in (
        None,
        "UTC",
        "Etc/UTC",
    ):  # Python has both times within its range
        first, end = first + _DAY, end - _DAY
    lowest, highest = first // unit * per_second, end // unit * per_second - 1
    extremes = pc.min_max(numbers)
    step = (1000 if types.is_time(kind) else finest) * per_second // 10**9
    is_within = (
        not extremes["min"].is_valid
        or lowest <= extremes["min"].as_py() <= extremes["max"].as_py() <= highest
    )
    if is_within and step <= 1:
        return None
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).astype("int64")
    odd = np.zeros(len(values), bool) if is_within else (values < lowest) | (values > highest)
    if step > 1:
        odd |= values % step != 0
    return odd if odd.any() else None


def _written_by_duckdb(column: pa.Array) -> list[str | None]:
    """Return DuckDB's texts of the values, in the column's time zone."""
    import duckdb

    with duckdb.connect() as connection:
        zone = getattr(column.type, "tz", None) or "UTC"
        try:
            connection.execute("SET TimeZone = ?", (zone,))
            connection.register("written", pa.table({"value": column}))
            rows = connection.execute("SELECT CAST(value AS VARCHAR) FROM written").fetchall()
        except duckdb.Error:  # a type that only Arrow has
            return [_python_text(value) for value in column]
    return [text for (text,) in rows]


def _python_text(value: pa.Scalar) -> str | None:
    try:
        return None if not value.is_valid else cell(value.as_py())
    except CONVERSION_ERRORS:
        return str(value)


def _halves(
    values: Any, convert: Callable[[pa.Array], pa.Array], text: Callable[[Any], str | None]
) -> Iterator[str | None]:
    """Yield the cells of the values that `convert` converts, and `text` of the others."""
    if (converted := _fitting(values, convert)) is not None:
        yield from texts(converted).to_pylist()
    elif len(values) == 1:
        value = values[0]
        yield text(value.as_py() if isinstance(value, pa.Scalar) else value)
    else:
        middle = len(values) // 2
        yield from _halves(values[:middle], convert, text)
        yield from _halves(values[middle:], convert, text)


def _fitting(values: Any, convert: Callable[[pa.Array], pa.Array]) -> pa.Array | None:
    try:
        converted = convert(values)
    except CONVERSION_ERRORS:
        return None
    return converted if _mask_odd(converted) is None else None


def common_type(kinds: set[pa.DataType]) -> pa.DataType | None:
    """Return the type of a column from the types of its batches."""
    if len(kinds) > 1:
        is_flag = all(types.is_boolean(kind) or types.is_integer(kind) for kind in kinds)
        return pa.int64() if is_flag else pa.string()
    return next(iter(kinds), None)


def _reason(declared: pa.DataType, shown: pa.DataType) -> str:
    """Return the reason why a column of a type became text, though its first rows may be shown in that type."""
    if not types.is_string(shown) and (types.is_struct(declared) or types.is_map(declared)):
        return f"the file cannot have a {declared}"
    return f"it has values that are no {plain_name(declared)}"
