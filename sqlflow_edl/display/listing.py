"""Lists of models and jobs: one line each.

Columns are dropped or shortened where the terminal is too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Row = Sequence[str | None]
_GAP = 2  # cells between columns
_FEWEST = 8  # cells of the elastic column; with fewer it is dropped, too


@dataclass(frozen=True, slots=True)
class ListLayout:
    """Layout of a list.

    elastic: the column that takes the rest of a line and is shortened. least: cells that it keeps as long as another
    column can go instead. gives_way: columns that are dropped where a line is too long, in this order.
    """

    elastic: str
    gives_way: Sequence[str]
    least: int = 20


@dataclass(frozen=True, slots=True)
class Listing:
    """Columns and rows that fit. left_out: columns that have values and no room."""

    columns: Sequence[str]
    rows: Sequence[Row]
    left_out: Sequence[str] = ()

    def footer(self, others: str) -> str:
        """Name the dropped columns, if any. others: how to see them."""
        return f"not shown: {', '.join(self.left_out)} ({others})" if self.left_out else ""


def listing(columns: Sequence[str], rows: Sequence[Row], layout: ListLayout, width: int) -> Listing:
    """Fit the rows into lines of `width` cells; empty columns and columns that do not fit are left out."""
    from rich.cells import cell_len

    widths = {
        name: max([cell_len(name), *(cell_len(row[place] or "") for row in rows)])
        for place, name in enumerate(columns)
        if any(row[place] for row in rows)
    }
    kept = [name for name in columns if name in widths] or list(columns)
    least = min(layout.least, widths.get(layout.elastic, 0))

    def rest() -> int:
        """Count the cells left for the elastic column."""
        return width - sum(widths.get(name, 0) + _GAP for name in kept if name != layout.elastic)

    left_out = []
    for name in layout.gives_way:
        if name in kept and rest() < least:
            kept.remove(name)
            left_out.append(name)

    if layout.elastic in kept and rest() < min(least, _FEWEST):
        kept.remove(layout.elastic)
        left_out.append(layout.elastic)

    def cut(name: str, text: str | None) -> str | None:
        return text if name != layout.elastic or text is None else shorten_text(text, rest())

    places = [(name, list(columns).index(name)) for name in kept]
    return Listing(kept, [[cut(name, row[place]) for name, place in places] for row in rows], left_out)


def shorten_text(text: str, room: int) -> str:
    """Return the text, or as much of it as `room` cells take, with an ellipsis."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"
