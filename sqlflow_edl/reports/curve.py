"""Learning curve of a stored model: rows for SHOW CURVE, and a line of blocks for DESCRIBE MODEL."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sqlflow_edl.reports.text import format_figures, number

if TYPE_CHECKING:
    from edl.models.archive import Figures

CLOCK = ("epoch", "step", "seconds")
WHOLE = ("epoch", "step")  # columns of whole numbers
LOSSES = ("loss", "validation_loss")


def columns(curve: Sequence[Figures], metrics: Sequence[str]) -> tuple[str, ...]:
    """Name the curve's figures: the clock, both losses, the model's metrics in their order, then others."""
    present = dict.fromkeys(name for row in curve for name in row)
    return tuple(name for name in dict.fromkeys((*CLOCK, *LOSSES, *metrics, *present)) if name in present)


def rows(curve: Sequence[Figures], names: Sequence[str]) -> Iterator[tuple[float | int | None, ...]]:
    """Yield a row for each measurement; epoch and step are whole numbers."""
    for row in curve:
        yield tuple(_whole(row.get(name)) if name in WHOLE else row.get(name) for name in names)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def describe_curve(curve: Sequence[Figures], metrics: Sequence[str]) -> Iterator[tuple[str, str]]:
    """List names and values: number of epochs, both losses as sparklines, first, best and last epoch."""
    if not curve:
        return
    names = [name for name in columns(curve, metrics) if name not in CLOCK]
    yield "epochs", f"{len({row.get('epoch') for row in curve}):,}"  # an epoch may have several measurements
    for name in LOSSES:
        if text := draw_sparkline([row.get(name) for row in curve]):
            yield name, text
    watched = LOSSES[curve[0].get("validation_loss") is not None]
    measured = [row for row in curve if row.get(watched) is not None]
    yield "first", _epoch(curve[0], names)
    if measured:
        yield f"lowest {watched}", _epoch(min(measured, key=lambda row: row[watched] or 0.0), names)
    yield "last", _epoch(curve[-1], names)


def draw_sparkline(values: Sequence[float | None]) -> str:
    """Draw a sparkline with the first and the last value; empty for fewer than two values."""
    present = [value for value in values if value is not None]
    line = sparkline(values)
    return f"{line} {number(present[0])} to {number(present[-1])}" if line else ""


def _epoch(row: Figures, names: Sequence[str]) -> str:
    return f"epoch {row.get('epoch') or 0:.0f}: {format_figures({name: row[name] for name in names if name in row})}"


WIDTH = 40  # characters
BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int = WIDTH) -> str:
    """Draw a block for each value, in proportion to it; empty for fewer than two finite values.

    Of more than `width` values, `width` are taken at equal distances, including the first and the last.
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if len(finite) < 2:
        return ""
    if len(finite) > width:
        step = (len(finite) - 1) / (width - 1)
        finite = [finite[round(place * step)] for place in range(width)]
    low, high = min(finite), max(finite)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((value - low) * scale)] for value in finite)
