"""Rows to forecast that a query does not have: the next steps of each series."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.forecasting.grid import Grid
from edl.forecasting.steps import Ints
from edl.spec.forecast import DAY, Forecast


def with_next_steps(rows: pa.Table, series_grid: Grid, spec: Forecast) -> pa.Table:
    """Return the rows and, after them, `spec.horizon` more of each series, with its name, their times and NULL."""
    last = rows.take(pa.array(series_grid.rows[series_grid.last - 1]))
    repeated = last.take(pa.array(np.repeat(np.arange(last.num_rows), spec.horizon)))
    steps = np.tile(np.arange(1, spec.horizon + 1), last.num_rows)
    columns = [
        _later(repeated.column(field.name), steps * series_grid.step.count, series_grid.step.unit)
        if field.name == spec.time
        else repeated.column(field.name)
        if field.name in spec.series
        else pa.nulls(repeated.num_rows, field.type)
        for field in rows.schema
    ]
    return pa.concat_tables([rows, pa.table(columns, schema=rows.schema)])


def _later(times: pa.ChunkedArray, steps: Ints, unit: str) -> pa.Array:
    """Return the times so many numbers, days, seconds or months later."""
    kind = times.type
    if types.is_integer(kind):
        return pc.add(times.cast(pa.int64()), pa.array(steps)).cast(kind)
    zone = getattr(kind, "tz", None)
    seconds = np.asarray(times.cast(pa.timestamp("s", zone)).cast(pa.int64()).to_numpy(), dtype=np.int64)
    size = DAY if unit == "day" else 1
    later = _months_later(seconds, steps) if unit == "month" else seconds + steps * size
    return pa.array(later).cast(pa.timestamp("s", zone)).cast(kind)


def _months_later(seconds: Ints, months: Ints) -> Ints:
    """Return times on the same day of a later month; the last day of a month stays the last one."""
    days = seconds // DAY
    month = days.astype("datetime64[D]").astype("datetime64[M]")
    first = month.astype("datetime64[D]").astype(np.int64)
    is_last = days + 1 == (month + 1).astype("datetime64[D]").astype(np.int64)
    later = month + months
    start, end = (month_start.astype("datetime64[D]").astype(np.int64) for month_start in (later, later + 1))
    moved = np.where(is_last, end - 1, np.minimum(start + days - first, end - 1))
    return moved * DAY + seconds % DAY
