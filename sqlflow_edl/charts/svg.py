"""Parts of charts: elements, scales with round ticks, axes, lines and legends.

A chart is one `<svg>` without scripts, styles or references, so it may stand in a notebook, in a page with a strict
content security policy, and in a file. Text and axes have the colour of the surrounding text; lines differ in dashes as
well as in colour. Classes let the style sheet of the page choose other colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

COLOURS = ("#3b82c4", "#d9772b", "#3a9a6b", "#9467bd", "#b8860b", "#c2477f")
DASHES = ("", "6 3", "2 2", "8 3 2 3", "4 4", "1 3")
FONT = 11  # pixels
TICKS = 5  # of an axis, about
_LETTER = 7.0  # mean width of a letter

Point = tuple[float, float]


def element(tag: str, inside: str = "", /, **attributes: object) -> str:
    """Render an element. `inside` is markup; `_` in a name stands for `-`, and a value of None is left out."""
    attribute_texts = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{attribute_texts}>{inside}</{tag}>" if inside else f"<{tag}{attribute_texts}/>"


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def text(x: float, y: float, words: str, anchor: str = "start", **attributes: object) -> str:
    return element("text", escape(words), x=x, y=y, text_anchor=anchor, **attributes)


def title(words: str) -> str:
    """Render the text that browsers show and read for the element around it."""
    return element("title", escape(words)) if words else ""


def drawing(inside: str, width: float, height: float, label: str, **attributes: object) -> str:
    """Render the whole chart. label: what it shows, for people who do not see it."""
    return element(
        "svg",
        inside,
        xmlns="http://www.w3.org/2000/svg",
        class_="chart",
        width=width,
        height=height,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=label,
        font_family="sans-serif",
        font_size=FONT,
        fill="currentColor",
        **attributes,
    )


def shorten_words(words: str, letters: int) -> str:
    return words if len(words) <= letters else words[: letters - 1] + "…"


def width_of(words: str) -> float:
    """Return about how many pixels wide the text is."""
    return len(words) * _LETTER


# Scales ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear scale from values to pixels; `low` is at the pixel `start`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of the value; the middle if the scale has one value only."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + share * (self.end - self.start)

    def round_to_ticks(self) -> Scale:
        """Return the scale with ticks as its ends."""
        if not (self.span > 0 and math.isfinite(self.span)):
            return self
        step = _round_step(self.span / TICKS)
        return replace(
            self, low=math.floor(self.low / step) * step, high=math.ceil(self.high / step - 1e-9) * step
        )

    @property
    def span(self) -> float:
        return self.high - self.low

    def ticks(self, most: int = TICKS, *, whole: bool = False) -> list[float]:
        """Return round values inside the scale, at most about so many; one if it has one value only."""
        if not (self.span > 0 and math.isfinite(self.span)):
            return [self.low]
        step = _round_step(self.span / most)
        step = max(step, 1.0) if whole else step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)][: 2 * most]


def _round_step(least: float) -> float:
    """Return 1, 2 or 5 times a power of ten, which is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


# Axes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """Area of a plot inside its margins. x, y: its scales."""

    x: Scale
    y: Scale
    width: float

    @classmethod
    def around(cls, xs: tuple[float, float], ys: tuple[float, float], width: float, height: float) -> Frame:
        """Return the frame for the ranges of both axes, in a drawing of that size."""
        y = Scale(*ys, height - 32, 22).round_to_ticks()
        left = 12 + max(width_of(label(tick)) for tick in y.ticks())
        return cls(Scale(*xs, left, width - 12), y, width)

    def axes(self, x_title: str, *, whole: bool = False, names: Sequence[str] = ()) -> str:
        """Draw grid lines, their labels, and the name of the horizontal axis.

        names: of 0, 1, … on the horizontal axis, in place of numbers.
        """
        parts = []
        for tick in self.y.ticks():
            y = self.y(tick)
            grid = {"stroke": "currentColor", "stroke_opacity": 0.15, "class_": "grid"}
            parts.append(element("path", d=f"M{self.x.start:.1f} {y:.1f}H{self.x.end:.1f}", **grid))
            parts.append(text(self.x.start - 5, y + 4, label(tick), "end"))
        bottom = self.y.start
        ticks = {tick: label(tick) for tick in self.x.ticks(8, whole=whole)}
        if names:
            letters = max(int((self.x.end - self.x.start) / len(names) / _LETTER), 2)
            ticks = {place: shorten_words(name, letters) for place, name in enumerate(names)}
        parts += [text(self.x(tick), bottom + 14, words, "middle") for tick, words in ticks.items()]
        axis = f"M{self.x.start:.1f} {bottom:.1f}H{self.x.end:.1f}"
        parts.append(element("path", d=axis, stroke="currentColor", stroke_opacity=0.5, class_="axis"))
        middle = (self.x.start + self.x.end) / 2
        parts.append(text(middle, bottom + 28, x_title, "middle", fill_opacity=0.75))
        return "".join(parts)

    def line(self, points: Sequence[Point], number: int = 0, **attributes: object) -> str:
        """Draw a line in the colour and dashes of that number."""
        places = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        return element("polyline", points=places, **stroke(number), **attributes)

    def marker(self, point: Point, number: int = 0, **attributes: object) -> str:
        colour = COLOURS[number % len(COLOURS)]
        marked = {"class_": f"marker line-{number % len(COLOURS)}", **attributes}
        return element(
            "circle",
            title(str(marked.pop("words", ""))),
            cx=self.x(point[0]),
            cy=self.y(point[1]),
            r=3,
            fill=colour,
            **marked,
        )


def stroke(number: int) -> dict[str, object]:
    """Return the attributes of a line."""
    return {
        "fill": "none",
        "stroke": COLOURS[number % len(COLOURS)],
        "stroke_width": 1.75,
        "stroke_dasharray": DASHES[number % len(DASHES)] or None,
        "stroke_linejoin": "round",
        "class_": f"line line-{number % len(COLOURS)}",
    }


def label(value: float) -> str:
    """Format a tick: 0, 0.25, 12,000, 1e+09."""
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.3g}"
    return f"{round(value, 6):,.10g}"


def legend(names: Sequence[str], width: float) -> str:
    """Draw a sample of each line with its name, at the top right."""
    return "".join(_entries(names, width))


def _entries(names: Sequence[str], width: float) -> Iterator[str]:
    x = width - 12
    for number, name in reversed(list(enumerate(names))):
        x -= width_of(name)
        yield text(x, 12, name)
        yield element("path", d=f"M{x - 26:.1f} 8H{x - 5:.1f}", **stroke(number))
        x -= 40
