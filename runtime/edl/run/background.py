"""Choice of the background rows that a model keeps: rows of its training, or rows made of quantiles.

With `model.keep_rows = none` no row of the training is kept. Each column then has quantiles of its numbers and its
frequent values, in an order of its own, so that the values of a row did not belong together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.data import Reader
from edl.spec import TREES, JobSpec
from edl.tasks.ranges import generator

MOST_ROWS = 200
MOST_BYTES = 1 << 20  # of them together; rows of long texts and lists are fewer
RANGES = 8  # of adjacent rows that are read: a range is a query where rows stay in a server
MEASURED_ROWS = 8192  # from which quantiles are computed
QUANTILES = 40  # rows that are made of them
LEAST_COUNT = 10  # of a value that is kept without its row

_STREAM = 0xBAC6  # random stream of the order of quantiles


def can_be_explained(spec: JobSpec) -> bool:
    """Return True if the model predicts one number, or classes, from columns that its JobSpec names."""
    label = spec.label
    explained = label.has_classes or label.is_number or bool(label.group)
    return explained and spec.zoo is None and spec.forecast is None and bool(spec.columns)


def needs_background(spec: JobSpec) -> bool:
    """Return True if the model is explained by comparison with other rows; trees explain themselves."""
    return can_be_explained(spec) and spec.framework not in TREES


def background_rows(spec: JobSpec, reader: Reader, training: int) -> pa.RecordBatch | None:
    """Return the rows that a model keeps, of the columns that it reads; None if it needs none.

    training: number of the reader's first rows; they are training rows.
    """
    columns = [name for name in spec.columns if name in reader.schema.names]
    if not needs_background(spec) or not training or len(columns) < len(spec.columns):
        return None
    if spec.keep_rows == "none":
        return _within_limit(_quantile_rows(spread_rows(reader, 0, training, MEASURED_ROWS, columns), spec))
    return _within_limit(spread_rows(reader, 0, training, MOST_ROWS, columns))


def spread_rows(reader: Reader, start: int, end: int, count: int, columns: Sequence[str]) -> pa.RecordBatch:
    """Return `count` of the rows [start, end), or all if they are fewer, in a few ranges with equal distances."""
    batches = [
        batch.select(list(columns))
        for first, last in divide_range(start, end, count)
        for batch in reader.read(first, last, list(columns))
    ]
    rows = pa.concat_batches(batches)
    return rows.take(pa.array(np.arange(rows.num_rows)))  # without the buffers of the rows around them


def divide_range(start: int, end: int, count: int) -> list[tuple[int, int]]:
    """Return a few ranges with equal distances, `count` of the rows [start, end) together, or all if they are fewer."""
    count = min(count, end - start)
    ranges = min(RANGES, count)
    firsts = [start + (end - start) * number // ranges for number in range(ranges)]
    sizes = [count * (number + 1) // ranges - count * number // ranges for number in range(ranges)]
    return [(first, first + size) for first, size in zip(firsts, sizes, strict=True)]


def _within_limit(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return every second row, or fewer, as long as the rows are larger than a model is to keep."""
    while rows.nbytes > MOST_BYTES and rows.num_rows > 1:
        rows = rows.take(pa.array(np.arange(0, rows.num_rows, 2)))
    return rows


# Rows made of quantiles -----------------------------------------------------------------------------------------


def _quantile_rows(rows: pa.RecordBatch, spec: JobSpec) -> pa.RecordBatch:
    columns = []
    for number, values in enumerate(rows.columns):
        column_values = _quantiles(values) if _has_order(values.type) else _keep_frequent(values)
        order = generator(spec.training.seed, _STREAM, number).permutation(len(column_values))
        columns.append(column_values.take(pa.array(order)))
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _has_order(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_)) or bool(
        types.is_date(type_) or types.is_timestamp(type_) or types.is_time(type_) or types.is_duration(type_)
    )


def _quantiles(values: pa.Array) -> pa.Array:
    """Return values between the numbers, dates or times of a column, at equal distances by rank, and its NULLs."""
    present = values.drop_null()
    steps = round(QUANTILES * len(present) / max(1, len(values)))
    if not steps:
        return pa.nulls(QUANTILES, values.type)
    as_numbers = _as_numbers(present)
    levels = (np.arange(steps) + 0.5) / steps
    numbers = (
        np.quantile(as_numbers[np.isfinite(as_numbers)], levels) if np.isfinite(as_numbers).any() else []
    )
    if not len(numbers):
        return pa.nulls(QUANTILES, values.type)
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        quantiles = pa.array(numbers).cast(values.type, safe=False)
    else:
        quantiles = _from_integers(np.round(numbers).astype(np.int64), values.type)
    return pa.concat_arrays([quantiles, pa.nulls(QUANTILES - steps, values.type)])


def _as_numbers(values: pa.Array) -> np.ndarray:
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False))
    whole = values if pa.types.is_integer(values.type) else values.cast(_integer_of(values.type))
    return np.asarray(whole.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _from_integers(integers: np.ndarray, type_: pa.DataType) -> pa.Array:
    if pa.types.is_integer(type_):
        return pa.array(integers).cast(type_, safe=False)
    return pa.array(integers).cast(_integer_of(type_), safe=False).cast(type_)


def _integer_of(type_: pa.DataType) -> pa.DataType:
    """Return the type of whole numbers that a date or time is stored as."""
    return pa.int32() if type_.bit_width == 32 else pa.int64()


def _keep_frequent(values: pa.Array) -> pa.Array:
    """Return the frequent values of a column by their shares, and NULL in place of the others."""
    if pa.types.is_nested(values.type):
        return pa.nulls(QUANTILES, values.type)
    counted = pc.value_counts(values)
    counts = counted.field("counts").to_numpy()
    order = [place for place in np.argsort(-counts, kind="stable") if counts[place] >= LEAST_COUNT]
    shares = np.floor(QUANTILES * counts[order] / len(values) + 0.5).astype(int)
    places = np.repeat(order, shares)[:QUANTILES].astype(np.int64)
    frequent = counted.field("values").take(pa.array(places))
    return pa.concat_arrays([frequent, pa.nulls(QUANTILES - len(places), values.type)])
