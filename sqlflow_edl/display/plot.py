"""Curve between 0 and 1 in characters of a terminal: braille patterns with 2 x 4 dots in each cell, or asterisks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from sqlflow_edl.charts.svg import Point

COLUMNS, LINES = 40, 12  # cells inside the axes
LEAST_COLUMNS = 16
MARGIN = 4  # cells left of the plot: a number, and the axis
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bits of the pattern, by line and column
_GAP = 4  # dots from one dot of the diagonal to the next


def plot_shares(
    points: Sequence[Point], x_title: str, y_title: str, *, width: int, blocks: bool = True
) -> list[str]:
    """Draw the line through points of a square from 0 to 1, above its diagonal, in lines of text.

    width: cells of a line; a plot that would be too narrow is empty. blocks: Unicode can be shown.
    """
    columns = min(COLUMNS, width - MARGIN)
    if columns < LEAST_COLUMNS or len(points) < 2:
        return []
    cells = _as_braille(points, columns) if blocks else _as_asterisks(points, columns)
    side, corner, floor = "│└─" if blocks else "|+-"
    labels = {0: "1", LINES - 1: "0"}
    lines = [f"{labels.get(place, ''):>2} {side}{cells[place]}".rstrip() for place in range(LINES)]
    below = f"0{x_title:^{columns - 2}}1" if len(x_title) <= columns - 2 else f"0{' ' * (columns - 2)}1"
    return [f"   {y_title}", *lines, f"   {corner}{floor * columns}", f"    {below}"]


def _as_braille(points: Sequence[Point], columns: int) -> list[str]:
    width, height = 2 * columns, 4 * LINES
    patterns = [[_BRAILLE] * columns for _ in range(LINES)]
    diagonal = [
        dot for place, dot in enumerate(_dots([(0.0, 0.0), (1.0, 1.0)], width, height)) if not place % _GAP
    ]
    for x, y in itertools.chain(_dots(points, width, height), diagonal):
        patterns[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
    return ["".join(map(chr, line)).replace(chr(_BRAILLE), " ") for line in patterns]


def _as_asterisks(points: Sequence[Point], columns: int) -> list[str]:
    cells = [[" "] * columns for _ in range(LINES)]
    for character, some_points in ((".", [(0.0, 0.0), (1.0, 1.0)]), ("*", points)):
        for x, y in _dots(some_points, columns, LINES):
            cells[y][x] = character
    return ["".join(line) for line in cells]


def _dots(points: Iterable[Point], width: int, height: int) -> Iterator[tuple[int, int]]:
    """Yield column and line, counted from above, of each dot that the line through the points crosses."""
    for (left, low), (right, high) in itertools.pairwise(points):
        begin, end = (left * (width - 1), low * (height - 1)), (right * (width - 1), high * (height - 1))
        steps = max(1, round(max(abs(end[0] - begin[0]), abs(end[1] - begin[1]))))
        for step in range(steps + 1):
            share = step / steps
            x, y = (begin[axis] + (end[axis] - begin[axis]) * share for axis in (0, 1))
            yield round(x), height - 1 - round(y)
