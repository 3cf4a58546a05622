"""Charts of bars: histograms, frequent values, and values by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sqlflow_edl.charts.svg import (
    COLOURS,
    Scale,
    drawing,
    element,
    label,
    shorten_words,
    text,
    title,
    width_of,
)
from sqlflow_edl.reports.reasons import format_contribution
from sqlflow_edl.reports.text import is_temporal, moment, number, percent
from sqlflow_edl.reports.text import value as text_of

if TYPE_CHECKING:
    from edl.models.fitting import Histogram
    from sqlflow_edl.reports.reasons import Reason

BAR = 18  # pixels of a bar and the gap below it
WIDTH = 520
NAME = 26  # letters of a name beside its bar
MOST_REASONS = 10  # contributions of columns
NUMBER = 52  # pixels of a number beside a bar
FEWEST_BINS = 12  # to which the bins of a histogram are merged
_SMALL = (220, 74)  # pixels of a histogram


def _merge_to_readable(bins_of_rows: Histogram) -> Histogram:
    """Merge bins in pairs until there are at most twice the cube root of the rows, as Rice's rule has it."""
    rows = sum(bins_of_rows.counts)
    while len(bins_of_rows.counts) > max(2 * rows ** (1 / 3), FEWEST_BINS):
        counts = (*[0] * (round(bins_of_rows.start / bins_of_rows.width) % 2), *bins_of_rows.counts)
        start = bins_of_rows.start - bins_of_rows.width * (len(counts) - len(bins_of_rows.counts))
        pairs = zip(counts[::2], (*counts[1::2], 0), strict=False)
        bins_of_rows = replace(
            bins_of_rows, start=start, width=2 * bins_of_rows.width, counts=tuple(map(sum, pairs))
        )
    return bins_of_rows


def histogram(bins_of_rows: Histogram, type_: str = "") -> str:
    """Draw the counts of a column's numbers; of few numbers, in fewer and wider bins.

    type_: Arrow type of the column; dates and times are written as such.
    """
    bins_of_rows = _merge_to_readable(bins_of_rows)
    width, height = _SMALL
    most, bins = max(bins_of_rows.counts), len(bins_of_rows.counts)
    end = bins_of_rows.start + bins * bins_of_rows.width
    x, y = Scale(bins_of_rows.start, end, 2, width - 2), Scale(0, most, height - 16, 4)
    named = _format_of(type_, end - bins_of_rows.start)
    bars = []
    for place, count in enumerate(bins_of_rows.counts):
        low, high = (
            bins_of_rows.start + place * bins_of_rows.width,
            bins_of_rows.start + (place + 1) * bins_of_rows.width,
        )
        hint = title(f"{named(low)} to {named(high)}: {count:,}")
        left, top = x(low), y(count)
        if count:
            top = min(top, y.start - 1)  # so that a single row can be seen
        bars.append(_bar(left, top, max(x(high) - left - 1, 1), y.start - top, hint))
    outer = number if named is label else named
    ends = text(2, height - 3, outer(bins_of_rows.start)) + text(width - 2, height - 3, outer(end), "end")
    axis = element("path", d=f"M2 {y.start}H{width - 2}", stroke="currentColor", stroke_opacity=0.4)
    what = "dates" if is_temporal(type_) else "numbers"
    summary = (
        f"Histogram of {sum(bins_of_rows.counts):,} {what} from {named(bins_of_rows.start)} to {named(end)}"
    )
    return drawing("".join((*bars, axis, ends)), width, height, summary)


def _format_of(type_: str, span: float) -> Callable[[float], str]:
    """Return what writes the numbers of a column; timestamps of more than two days are written without their time."""
    if not is_temporal(type_):
        return label
    is_long = type_.startswith("timestamp") and span > 2 * 86_400
    return partial(moment, type_="date" if is_long else type_)


def top_values(counts: Sequence[tuple[object, int]], rows: int, most: int = 5) -> str:
    """Draw the most frequent values of a column with their shares of the rows."""
    shown = [(text_of(value), count / rows if rows else 0.0) for value, count in counts[:most]]
    longest = max((share for _, share in shown), default=0.0) or 1.0
    width, left, bar = _SMALL[0], 92, 14
    parts = []
    for place, (name, share) in enumerate(shown):
        y = place * bar
        hint = title(f"{name}: {percent(share)}")
        parts.append(text(left - 4, y + 11, shorten_words(name, 14), "end"))
        parts.append(_bar(left, y + 2, share / longest * (width - left - 46), bar - 4, hint))
        parts.append(text(width, y + 11, percent(share), "end"))
    summary = "Most frequent: " + ", ".join(f"{name} {percent(share)}" for name, share in shown)
    return drawing("".join(parts), width, len(shown) * bar, summary) if shown else ""


def bars(values: Sequence[tuple[str, float | None]], words: str, *, shares: bool = False) -> str:
    """Draw a horizontal bar for each value. words: what they are. shares: write them in percent."""
    if not values:
        return ""
    format_value = percent if shares else number
    longest = max((abs(value or 0.0) for _, value in values), default=0.0) or 1.0
    left = 8 + max(width_of(shorten_words(name, NAME)) for name, _ in values)
    room = WIDTH - left - 64
    parts = []
    for place, (name, value) in enumerate(values):
        y = place * BAR
        hint = title(f"{name}: {format_value(value)}")
        length = abs(value or 0.0) / longest * room
        parts.append(text(left - 6, y + 13, shorten_words(name, NAME), "end"))
        parts.append(_bar(left, y + 3, length, BAR - 6, hint))
        parts.append(text(left + length + 5, y + 13, format_value(value)))
    summary = f"{words}: " + ", ".join(f"{name} {format_value(value)}" for name, value in values[:5])
    return drawing("".join(parts), WIDTH, len(values) * BAR, summary)


def contributions(values: Sequence[Reason], most: int = MOST_REASONS) -> str:
    """Draw the contributions of columns to a prediction from a middle line, the largest first."""
    shown = [reason for reason in values if reason.contribution][:most]
    if not shown:
        return ""
    names = [f"{reason.column} {reason.value}" for reason in shown]
    left = 8 + max(width_of(shorten_words(name, NAME)) for name in names)
    least, greatest = (
        min(0.0, *(reason.contribution for reason in shown)),
        max(0.0, *(reason.contribution for reason in shown)),
    )
    x = Scale(least, greatest, left + NUMBER, WIDTH - NUMBER)
    parts = []
    for place, (name, reason) in enumerate(zip(names, shown, strict=True)):
        y, end = place * BAR, x(reason.contribution)
        start, is_more = x(0.0), reason.contribution > 0
        colour = 0 if is_more else 1
        parts.append(_bar(min(start, end), y + 3, abs(end - start), BAR - 6, title(reason.words), colour))
        parts.append(text(left - 6, y + 13, shorten_words(name, NAME), "end"))
        beside = (end + 5, "start") if is_more else (end - 5, "end")
        parts.append(text(beside[0], y + 13, format_contribution(reason.contribution), beside[1]))
    height = len(shown) * BAR
    parts.append(element("path", d=f"M{x(0.0):.1f} 0V{height}", stroke="currentColor", stroke_opacity=0.4))
    summary = "Contributions: " + "; ".join(reason.words for reason in shown[:5])
    return drawing("".join(parts), WIDTH, height, summary)


def _bar(x: float, y: float, width: float, height: float, inside: str, colour: int = 0) -> str:
    return element(
        "rect",
        inside,
        x=x,
        y=y,
        width=max(width, 0.0),
        height=max(height, 0.0),
        fill=COLOURS[colour],
        class_="bar less" if colour else "bar",
    )
