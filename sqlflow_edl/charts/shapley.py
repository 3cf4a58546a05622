"""Charts of the rows of EXPLAIN with a Shapley value of each column: importances, beeswarm, dependence.
They are the plots of Lundberg and Lee's `shap` (2017), as SVG of a bounded size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.errors import SemanticError, did_you_mean
from sqlflow_edl.charts.bars import NAME, WIDTH, bars
from sqlflow_edl.charts.svg import (
    COLOURS,
    Frame,
    Scale,
    drawing,
    element,
    label,
    shorten_words,
    text,
    width_of,
)
from sqlflow_edl.reports.text import number

SHOWN_COLUMNS = 12  # of a beeswarm
SHOWN_ROWS = 400  # evenly chosen ones, so that a chart stays small
SHOWN_PLACES = 8  # of categories on an axis
DOT = 4.0  # pixels
STRIP, HEIGHT = 34, 260  # pixels of a column's strip, and of a dependence chart
RAMP = ("#2f6fce", "#6a68c9", "#9a5fbb", "#c0539f", "#d8487c", "#e23e57")  # low to high values
UNRANKED = "#8a8a8a"  # values without an order, and NULL
Floats: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.int64]
_YEAR = 365.2425 * 86_400  # seconds


@dataclass(frozen=True, slots=True)
class Explained:
    """Rows with a Shapley value of each column, the most important column first.

    target: column that the model predicts. values: values of each column. effects: (rows,) each, NaN for NULL.
    """

    target: str
    values: dict[str, pa.ChunkedArray]
    effects: dict[str, Floats]

    @classmethod
    def of(cls, table: pa.Table) -> Explained | None:
        """Find the columns `x`, `x_shap` and `label_base`; None if the table has no such columns."""
        names = table.column_names
        bases = [name.removesuffix("_base") for name in names if name.endswith("_base")]
        columns = [name for name in names if f"{name}_shap" in names and _is_number(table[f"{name}_shap"])]
        if not (bases and columns and table.num_rows):
            return None
        effects = {name: _numbers(table.column(f"{name}_shap")) for name in columns}
        columns.sort(key=lambda name: -_importance(effects[name]))
        return cls(
            bases[-1],
            {name: table.column(name) for name in columns},
            {name: effects[name] for name in columns},
        )

    def check_column(self, column: str) -> str:
        """Return the column. Raises SemanticError if the rows have no Shapley value of it."""
        if column not in tuple(self.effects):  # of a notebook, where it may be anything
            raise SemanticError(
                f"there is no Shapley value of {column}", hint=did_you_mean(str(column), self.effects)
            )
        return column


def _numbers(column: pa.ChunkedArray) -> Floats:
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _is_number(column: pa.ChunkedArray) -> bool:
    kind = column.type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _importance(effects: Floats) -> float:
    finite = effects[np.isfinite(effects)]
    return float(np.abs(finite).mean()) if len(finite) else 0.0


def _ordered_values(column: pa.ChunkedArray) -> Floats | None:
    """Return the values as numbers, dates as years; None if they have no order, as texts."""
    if types.is_duration(column.type):
        column = pc.cast(column, pa.int64())
    elif types.is_temporal(column.type) and not types.is_time(column.type):
        seconds = pc.cast(pc.cast(column, pa.timestamp("s"), safe=False), pa.int64())
        return 1970 + _numbers(seconds) / _YEAR
    if types.is_boolean(column.type):
        column = pc.cast(column, pa.int8())
    return _numbers(column) if _is_number(column) else None


# Charts ----------------------------------------------------------------------------------------------------


def importances(rows: Explained) -> str:
    """Draw the mean size of each column's Shapley values."""
    return bars([(name, _importance(effects)) for name, effects in rows.effects.items()], "Importances")


def beeswarm(rows: Explained) -> str:
    """Draw a strip for each column: a dot for each row at its Shapley value, coloured by the column's value."""
    names = list(rows.effects)[:SHOWN_COLUMNS]
    finite = np.concatenate([effects[np.isfinite(effects)] for effects in rows.effects.values()])
    low, high = (min(finite.min(), 0.0), max(finite.max(), 0.0)) if len(finite) else (0.0, 0.0)
    left = 12 + max(width_of(shorten_words(name, NAME)) for name in names)
    scale = Scale(float(low), float(high), left + DOT, WIDTH - 30).round_to_ticks()
    top, bottom = 22, 22 + STRIP * len(names)
    parts = [_grid(scale, top, bottom, f"effect on {rows.target}"), _key()]
    for place, name in enumerate(names):
        middle = top + STRIP * (place + 0.5)
        parts.append(text(left - 6, middle + 4, shorten_words(name, NAME), "end"))
        parts += _strip(rows, name, scale, middle)
    summary = ", ".join(f"{name} {number(_importance(rows.effects[name]))}" for name in names[:5])
    return drawing(
        "".join(parts), WIDTH, bottom + 36, f"Effects of the columns on {rows.target}, on average {summary}"
    )


def _grid(scale: Scale, top: float, bottom: float, name: str) -> str:
    parts = [text((scale.start + scale.end) / 2, bottom + 30, name, "middle", fill_opacity=0.75)]
    for tick in scale.ticks():
        x, opacity = scale(tick), 0.5 if abs(tick) < 1e-12 else 0.15
        parts.append(
            element("path", d=f"M{x:.1f} {top}V{bottom}", stroke="currentColor", stroke_opacity=opacity)
        )
        parts.append(text(x, bottom + 15, label(tick), "middle"))
    return "".join(parts)


def _key() -> str:
    """Draw the colours of low and high values."""
    parts = [text(WIDTH - 12, 12, "high value", "end"), text(WIDTH - 12 - 150, 12, "low value", "end")]
    for place, colour in enumerate(RAMP):
        parts.append(element("rect", x=WIDTH - 156 + 12 * place, y=4, width=12, height=8, fill=colour))
    return "".join(parts)


def _names_key(names: Sequence[str]) -> str:
    """Draw the colours of categories with their names."""
    parts, x = [], WIDTH - 12.0
    letters = max(int(((WIDTH - 150) / len(names) - 18) / width_of("x")), 2)  # the title is at the left
    for name, colour in reversed(
        [*zip((shorten_words(long_name, letters) for long_name in names), COLOURS, strict=False)]
    ):
        parts.append(text(x, 12, name, "end"))
        x -= width_of(name) + 8
        parts.append(element("circle", cx=x, cy=8, r=DOT / 2 + 1, fill=colour))
        x -= 10
    return "".join(parts)


def _strip(rows: Explained, name: str, scale: Scale, middle: float) -> Iterator[str]:
    effects = rows.effects[name]
    chosen = _choose_positions(np.isfinite(effects))
    x = scale.start + (effects[chosen] - scale.low) / (scale.span or 1.0) * (scale.end - scale.start)
    y = middle + _swarm(x, STRIP / 2 - DOT)
    ordered = _ordered_values(rows.values[name])
    classes = np.full(len(chosen), -1) if ordered is None else _rank_values(ordered[chosen])
    yield from _dots(x, y, classes, RAMP)


def _choose_positions(is_known: npt.NDArray[np.bool_]) -> Places:
    """Return positions of known rows, evenly chosen if they are many."""
    places = np.flatnonzero(is_known)
    if len(places) <= SHOWN_ROWS:
        return places
    return places[np.linspace(0, len(places) - 1, SHOWN_ROWS).astype(np.int64)]


def _swarm(x: Floats, most: float) -> Floats:
    """Return offsets in pixels, at most `most`, by which dots at nearly the same place lie beside each other."""
    if not len(x):
        return x
    bins = np.round(x / DOT).astype(np.int64)
    order = np.argsort(bins, kind="stable")
    _, first, counts = np.unique(bins[order], return_index=True, return_counts=True)
    nth = np.empty(len(x), dtype=np.int64)
    nth[order] = np.arange(len(x)) - np.repeat(first, counts)
    step = min(DOT, most / max(int(counts.max()) // 2, 1))
    return np.asarray(np.where(nth % 2, 1, -1) * ((nth + 1) // 2) * step, dtype=np.float64)


def _rank_values(values: Floats) -> Places:
    """Return the class of each value in `RAMP` by its rank, equal values alike; -1 for NaN."""
    is_finite = np.isfinite(values)
    distinct, places, counts = np.unique(values[is_finite], return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1)
    if len(distinct) == 2:
        middle = np.array([0.0, 1.0])  # as of a boolean, however frequent each is
    classes = np.full(len(values), -1)
    classes[is_finite] = np.minimum((middle[places] * len(RAMP)).astype(np.int64), len(RAMP) - 1)
    return classes


def _dots(x: Floats, y: Floats, classes: Places, colours: tuple[str, ...]) -> Iterator[str]:
    """Draw the dots of each colour as one path of lines of length 0 with round ends."""
    for class_ in np.unique(classes):
        places = " ".join(
            f"M{a:.1f} {b:.1f}h0" for a, b in zip(x[classes == class_], y[classes == class_], strict=True)
        )
        colour = UNRANKED if class_ < 0 else colours[class_ % len(colours)]
        look = {"stroke": colour, "stroke_width": DOT, "stroke_linecap": "round", "stroke_opacity": 0.75}
        yield element("path", d=places, fill="none", **look)


def dependence(rows: Explained, column: str, by: str = "") -> str:
    """Draw the Shapley value of a column over its value. by: another column; its values colour the dots.
    Raises SemanticError for an unknown column.
    """
    values, effects = rows.values[rows.check_column(column)], rows.effects[column]
    across, names = _places(values, SHOWN_PLACES)
    chosen = _choose_positions(np.isfinite(effects) & np.isfinite(across))
    if not len(chosen):
        return ""
    places, heights = across[chosen], effects[chosen]
    ends = (-0.5, len(names) - 0.5) if names else (float(places.min()), float(places.max()))
    frame = Frame.around(ends, (float(heights.min()), float(heights.max())), WIDTH, HEIGHT)
    x = frame.x.start + (places - frame.x.low) / (frame.x.span or 1.0) * (frame.x.end - frame.x.start)
    y = frame.y.start + (heights - frame.y.low) / (frame.y.span or 1.0) * (frame.y.end - frame.y.start)
    if names:
        x = x + _swarm_within(places, y, (frame.x.end - frame.x.start) / len(names) / 2 - DOT)
    title = text(12, 12, f"effect on {rows.target}", fill_opacity=0.75)
    summary = f"Effect of {column} on {rows.target}, {number(float(heights.min()))} to {number(float(heights.max()))}"
    colouring = _colour_rows(rows, by, chosen)
    drawn = "".join(
        (
            frame.axes(column, names=names),
            title,
            *_dots(x, y, colouring.classes, colouring.colours),
            colouring.key,
        )
    )
    return drawing(drawn, WIDTH, HEIGHT, summary)


def _swarm_within(groups: Floats, y: Floats, most: float) -> Floats:
    """Return offsets of dots at nearly the same height, within each of the groups."""
    offsets = np.zeros(len(y))
    for group in np.unique(groups):
        offsets[groups == group] = _swarm(y[groups == group], most)
    return offsets


def _places(values: pa.ChunkedArray, most: int) -> tuple[Floats, list[str]]:
    """Return the places of values on an axis, and the names of categories; NaN for NULL.

    Of more than `most` categories the most frequent have a place each, and the others one together.
    """
    ordered = _ordered_values(values)
    if ordered is not None:
        return ordered, []
    texts = _texts(values)
    counts = Counter(value for value in texts.to_pylist() if value is not None)
    if len(counts) <= most:
        names = sorted(counts)
        return _numbers(pc.index_in(texts, pa.array(names, pa.string()))), names
    names = sorted(name for name, _ in counts.most_common(most - 1))
    places = pc.fill_null(pc.index_in(texts, pa.array(names, pa.string())), len(names))
    return _numbers(pc.if_else(texts.is_valid(), places, pa.scalar(None, pa.int32()))), [*names, "others"]


def _texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values as texts; values of types without a text form, such as lists, as Python writes them."""
    try:
        return pc.cast(values, pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        cells = (None if value is None else str(value) for value in values.to_pylist())
        return pa.chunked_array([pa.array(cells, pa.string())])


@dataclass(frozen=True, slots=True)
class _Colouring:
    classes: Places
    colours: tuple[str, ...]
    key: str


def _colour_rows(rows: Explained, by: str, chosen: Places) -> _Colouring:
    """Return the colours of dots by the values of another column, or one colour."""
    if not by:
        return _Colouring(np.zeros(len(chosen), dtype=np.int64), COLOURS, "")
    places, names = _places(rows.values[rows.check_column(by)], len(COLOURS))
    if not names:
        return _Colouring(_rank_values(places[chosen]), RAMP, _key() + text(WIDTH - 230, 12, f"{by}:", "end"))
    classes = np.where(np.isfinite(places[chosen]), np.nan_to_num(places[chosen]), -1).astype(np.int64)
    return _Colouring(classes, COLOURS, _names_key(names))
