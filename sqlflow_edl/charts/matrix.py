"""Confusion matrix as a chart: a cell for each pair of classes, with recall at the right and precision below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlflow_edl.charts.svg import COLOURS, drawing, element, shorten_words, text, title, width_of
from sqlflow_edl.reports.text import percent

HEIGHT = 30  # pixels of a cell
NARROWEST, WIDEST = 34, 60
FEW = 8  # classes that have the widest cells
LETTERS = 14  # of a name beside its row
_TOP = 34


@dataclass(frozen=True, slots=True)
class _Layout:
    """Places in the drawing: the left end of the cells, and the width of one."""

    left: float
    cell: float

    def x(self, column: int) -> float:
        return self.left + column * self.cell

    def y(self, row: int) -> float:
        return _TOP + row * HEIGHT


def confusion(classes: Sequence[object], matrix: Sequence[Sequence[float]]) -> str:
    """Draw the rows by true and predicted class; a cell is the darker, the larger its share of the true class."""
    names = [str(class_) for class_ in classes]
    widest = max(width_of(shorten_words(name, 10)) for name in names)
    cell = WIDEST if len(names) <= FEW else min(max(10 + widest, NARROWEST), WIDEST)
    layout = _Layout(26 + max(width_of(shorten_words(name, LETTERS)) for name in [*names, "precision"]), cell)
    count = len(names)
    parts = [*_names(names, layout)]
    for row, counts in enumerate(matrix):
        total = sum(counts)
        parts += [_cell(names, (row, column), value, total, layout) for column, value in enumerate(counts)]
        recall = _share(counts[row], total)
        parts.append(_margin(layout.x(count), layout.y(row), layout, recall, data_recall=row))
    for column in range(count):
        total = sum(counts[column] for counts in matrix)
        precision = _share(matrix[column][column], total)
        parts.append(_margin(layout.x(column), layout.y(count), layout, precision, data_precision=column))
    right = _share(sum(matrix[place][place] for place in range(count)), sum(map(sum, matrix)))
    summary = f"Confusion matrix of {count} classes{f', {right} right' if right else ''}"
    return drawing("".join(parts), layout.x(count + 1), layout.y(count + 1), summary)


def _names(names: Sequence[str], layout: _Layout) -> list[str]:
    """Name the axes, the rows and the columns."""
    count = len(names)
    turned = f"translate(11 {layout.y(0) + count * HEIGHT / 2:g}) rotate(-90)"
    faint = {"text_anchor": "middle", "fill_opacity": 0.75}
    letters = int(layout.cell / 6.5)
    return [
        element("text", "predicted", x=layout.x(0) + count * layout.cell / 2, y=11, **faint),
        element("text", "true", transform=turned, **faint),
        *(
            text(layout.x(at) + layout.cell / 2, _TOP - 6, shorten_words(name, letters), "middle")
            for at, name in enumerate(names)
        ),
        *(
            text(layout.left - 6, layout.y(at) + 19, shorten_words(name, LETTERS), "end")
            for at, name in enumerate(names)
        ),
        text(layout.x(count) + layout.cell / 2, _TOP - 6, "recall"[:letters], "middle", fill_opacity=0.75),
        text(layout.left - 6, layout.y(count) + 19, "precision", "end", fill_opacity=0.75),
    ]


def _cell(names: Sequence[str], pair: tuple[int, int], count: float, total: float, layout: _Layout) -> str:
    true, predicted = pair
    share = count / total if total else 0.0
    hint = title(f"true {names[true]}, predicted {names[predicted]}: {count:,.10g}, {percent(share)}")
    x, y, key = layout.x(predicted), layout.y(true), f"{true}-{predicted}"
    box = element(
        "rect",
        hint,
        x=x,
        y=y,
        width=layout.cell - 2,
        height=HEIGHT - 2,
        fill=COLOURS[true != predicted],
        fill_opacity=f"{0.08 + 0.6 * share:.3f}",
        class_="right" if true == predicted else "wrong",
        data_cell=key,
    )
    return box + text(x + layout.cell / 2 - 1, y + 18, _count(count), "middle", data_count=key)


def _margin(x: float, y: float, layout: _Layout, words: str, **attributes: object) -> str:
    return text(x + layout.cell / 2 - 1, y + 18, words, "middle", fill_opacity=0.75, **attributes)


def _count(value: float) -> str:
    return f"{value:,.6g}" if abs(value) < 1e5 else f"{value:.3g}"


def _share(part: float, whole: float) -> str:
    """Format a share, or return an empty string if the whole is zero."""
    return percent(part / whole) if whole else ""
