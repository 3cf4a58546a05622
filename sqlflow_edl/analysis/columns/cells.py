"""Reading of a column's cells, as a function of the COLUMN language defines it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Items = Literal["", "numbers", "ids", "words"]


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of a column: one value each, or several.

    items: the kind of several values: numbers of a vector, whole numbers that are ids, or distinct values; empty for
    one value. delimiter: between items. separator: between an item and its weight, empty without weights. size:
    numbers in each cell, or number of ids; 0 means as many as the data has.
    """

    column: str
    items: Items = ""
    delimiter: str = ","
    separator: str = ""
    size: int = 0

    @property
    def has_several(self) -> bool:
        return bool(self.items)
