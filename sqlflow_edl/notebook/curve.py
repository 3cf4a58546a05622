"""Learning curve of a training as an SVG: training and validation loss by epoch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sqlflow_edl.reports.text import number

if TYPE_CHECKING:
    from edl.jobs.events import EpochEnd

WIDTH, HEIGHT = 420, 150  # pixels
MOST_POINTS = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 8, 20, 20  # margins around the lines
_COLOURS = {"training loss": "#3b82c4", "validation loss": "#e0803a"}

Point = tuple[float, float]  # epoch, loss


def learning_curve(epochs: Sequence[EpochEnd]) -> str:
    """Draw an SVG of both losses; empty for fewer than two epochs."""
    ends = _thinned([each for each in epochs if each.final])
    both = {
        "training loss": _points((each.epoch, each.loss) for each in ends),
        "validation loss": _points((each.epoch, each.metrics.get("loss")) for each in ends),
    }
    lines = {name: points for name, points in both.items() if points}
    known = [point for points in lines.values() for point in points]
    if len({epoch for epoch, _ in known}) < 2:
        return ""
    scale = _Scale(known)
    drawn = "".join(_line(scale, points, _COLOURS[name]) for name, points in lines.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'role="img" aria-label="learning curve" font-family="sans-serif" font-size="11" fill="currentColor">'
        f"{scale.axes()}{drawn}{_legend(lines)}</svg>"
    )


class _Scale:
    """Scale from epochs and losses to pixels."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.first, self.last = min(x for x, _ in points), max(x for x, _ in points)
        self.low, self.high = min(y for _, y in points), max(y for _, y in points)

    def __call__(self, point: Point) -> str:
        epoch, loss = point
        x = (epoch - self.first) / (self.last - self.first)
        y = (self.high - loss) / (self.high - self.low) if self.high > self.low else 0.5
        return f"{_LEFT + x * (WIDTH - _LEFT - _RIGHT):.1f},{_TOP + y * (HEIGHT - _TOP - _BOTTOM):.1f}"

    def axes(self) -> str:
        """Draw two lines, and the numbers at their ends."""
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        ends = (
            (_LEFT - 4, _TOP + 4, "end", number(self.high)),
            (_LEFT - 4, bottom, "end", number(self.low)),
            (_LEFT, HEIGHT - 5, "start", f"epoch {self.first:g}"),
            (right, HEIGHT - 5, "end", f"{self.last:g}"),
        )
        path = f"M{_LEFT} {_TOP}V{bottom}H{right}"
        texts = (f'<text x="{x}" y="{y}" text-anchor="{side}">{word}</text>' for x, y, side, word in ends)
        return f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>{"".join(texts)}'


def _points(pairs: Iterable[tuple[int, float | None]]) -> list[Point]:
    """Keep the points with a finite loss."""
    return [(epoch, loss) for epoch, loss in pairs if loss is not None and math.isfinite(loss)]


def _thinned(epochs: list[EpochEnd]) -> list[EpochEnd]:
    """Sample at most `MOST_POINTS` epochs, including the last one, to keep the page small."""
    stride = -(-len(epochs) // MOST_POINTS)
    return epochs[::-stride][::-1] if stride else []


def _line(scale: _Scale, points: Sequence[Point], colour: str) -> str:
    x, y = scale(points[-1]).split(",")
    path = f'<polyline points="{" ".join(map(scale, points))}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    return f'{path}<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>'


def _legend(names: Iterable[str]) -> str:
    spans = (f'<tspan fill="{_COLOURS[name]}" dx="8">{name}</tspan>' for name in names)
    return f'<text x="{WIDTH - _RIGHT}" y="12" text-anchor="end">{"".join(spans)}</text>'
