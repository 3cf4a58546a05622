"""How the cells of a column are read, when a function of the COLUMN language says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Items = Literal["", "numbers", "ids", "words"]


@dataclass(frozen=True, slots=True)
class Cells:
    """One value each, or several.

    items: what several are: the numbers of a vector, whole numbers that are ids, or values that are told apart; empty
    for one value. delimiter: between items. separator: between an item and its weight, empty without weights. size:
    numbers in each cell, or ids that there are; 0: as many as the data has.
    """

    column: str
    items: Items = ""
    delimiter: str = ","
    separator: str = ""
    size: int = 0

    @property
    def several(self) -> bool:
        return bool(self.items)
