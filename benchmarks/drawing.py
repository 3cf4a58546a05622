"""Stacked areas over time, as an SVG picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

WIDTH, HEIGHT, LEFT, GAP = 720, 150, 46, 54  # of one panel, in pixels; GAP: below each, for its axis
COLOURS = ("#4878a8", "#e0954a")
INK, PALE = "#333333", "#bbbbbb"


@dataclass(frozen=True)
class Panel:
    """Panel of a picture.

    areas: name -> a value for each second. line: name and values of a curve over them. mark: name, and a
    second.
    """

    title: str
    areas: Mapping[str, Sequence[float]]
    line: tuple[str, Sequence[float]]
    mark: tuple[str, float]


def picture(panels: Sequence[Panel], seconds: int, top: int) -> str:
    """Draw all panels below one another, over the same seconds. top: largest value."""
    height = len(panels) * (HEIGHT + GAP) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + LEFT + 20} {height}"',
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        parts.append(f'<g transform="translate({LEFT},{number * (HEIGHT + GAP) + 24})">')
        parts += _panel(panel, WIDTH / seconds, HEIGHT / top, seconds, top)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, x: float, y: float, seconds: int, top: int) -> Iterator[str]:
    base = [0.0] * seconds
    for (_, values), colour in zip(panel.areas.items(), COLOURS, strict=False):
        upper = [low + value for low, value in zip(base, _filled(values, seconds), strict=True)]
        points = [*_steps(upper, x, y), *reversed([*_steps(base, x, y)])]
        yield f'<polygon points="{" ".join(points)}" fill="{colour}"/>'
        base = upper
    line = " ".join(_steps(_filled(panel.line[1], seconds), x, y))
    yield f'<polyline points="{line}" fill="none" stroke="{INK}" stroke-width="1.2"/>'
    at = panel.mark[1] * x
    yield f'<path d="M{at:.1f},0V{HEIGHT}" stroke="{INK}" stroke-dasharray="4 3"/>'
    yield f'<text x="{at + 4:.1f}" y="{HEIGHT - 6}" fill="{INK}">{escape(panel.mark[0])}</text>'
    yield f'<path d="M0,0H{WIDTH}M0,0V{HEIGHT}H{WIDTH}" fill="none" stroke="{PALE}"/>'
    yield f'<text x="-8" y="4" text-anchor="end" fill="{INK}">{top}</text>'
    yield f'<text x="-8" y="{HEIGHT}" text-anchor="end" fill="{INK}">0</text>'
    for second in range(0, seconds + 1, _tick(seconds)):
        yield f'<text x="{second * x:.1f}" y="{HEIGHT + 16}" text-anchor="middle" fill="{INK}">{second} s</text>'
    names = [*panel.areas]
    yield f'<text y="-8" font-weight="bold" fill="{INK}">{escape(panel.title)}</text>'
    shown = zip([*names, panel.line[0]], [*COLOURS[: len(names)], INK], strict=True)
    for place, (name, colour) in enumerate(shown):
        yield f'<text x="{WIDTH - 330 + 100 * place}" y="-8" fill="{colour}">{escape(name)}</text>'


def _filled(values: Sequence[float], seconds: int) -> list[float]:
    return [*values[:seconds], *[0.0] * (seconds - len(values))]


def _steps(values: Sequence[float], x: float, y: float) -> Iterator[str]:
    second = 0
    for value, same in groupby(round(value, 1) for value in values):
        for end in (second, second := second + len([*same])):
            yield f"{end * x:.1f},{HEIGHT - value * y:.1f}"


def _tick(seconds: int) -> int:
    return next(step for step in (5, 10, 20, 50, 100, 200, 500, 1000, 5000) if seconds / step <= 12)
