"""The fitting pass over cells that hold several values: how they are read, and what is known of them afterwards.

The rules are those of `statistics`: a number that is NULL or not finite enters no figure. What cannot be read ends the
pass over that column, and is kept as the error that its feature then raises, with its place in the statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from edl.errors import SemanticError
from edl.features.arrays import Floats
from edl.features.lists import Lists
from sqlflow_edl.analysis.accumulators import rounded


@dataclass(frozen=True, slots=True)
class Cells:
    """How the cells of a column are read: one value each, or several with a delimiter between them.

    delimiter: empty for one value. size: numbers in each cell; 0: as many as the data has.
    """

    column: str
    delimiter: str = ""
    size: int = 0

    @property
    def several(self) -> bool:
        return bool(self.delimiter)


@dataclass(frozen=True, slots=True)
class ListStatistics:
    """What is known of the cells of a column. mean, std: of each place of a vector; none without a number."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    error: SemanticError | None = None  # why they cannot be read


@dataclass(slots=True)
class VectorMoments:
    """What `Moments` is for a number, for each place of a vector."""

    _count: Floats = field(default_factory=lambda: np.zeros(0))
    _mean: Floats = field(default_factory=lambda: np.zeros(0))
    _deviations: Floats = field(default_factory=lambda: np.zeros(0))
    _least: Floats = field(default_factory=lambda: np.zeros(0))
    _most: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def size(self) -> int:
        """Numbers in each vector; 0 before there was one."""
        return len(self._mean)

    def add(self, values: Floats) -> None:
        """values: of shape (n, size)."""
        if not self.size:
            width = values.shape[1]
            self._count, self._mean, self._deviations = np.zeros((3, width))
            self._least, self._most = np.full(width, np.inf), np.full(width, -np.inf)
        usable = np.isfinite(values)
        count = usable.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # near the end of float64's range; see `ends`
            mean = np.where(usable, values, 0.0).sum(axis=0) / np.maximum(count, 1)
            differences = np.where(usable, values - mean, 0.0)
            self._merge(count, mean, np.square(differences).sum(axis=0))
        self._least = np.minimum(self._least, np.where(usable, values, np.inf).min(axis=0, initial=np.inf))
        self._most = np.maximum(self._most, np.where(usable, values, -np.inf).max(axis=0, initial=-np.inf))

    def _merge(self, count: Floats, mean: Floats, deviations: Floats) -> None:
        total = self._count + count
        share = count / np.maximum(total, 1)
        gap = mean - self._mean
        self._deviations += deviations + gap * gap * self._count * share
        self._mean += gap * share
        self._count = total

    def ends(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and population deviation of each place, rounded as those of a number; 0 where there is none."""
        same, some = self._least >= self._most, self._count > 0
        largest = np.finfo(np.float64).max
        std = np.nan_to_num(
            np.sqrt(self._deviations / np.maximum(self._count, 1)), nan=largest, posinf=largest
        )
        mean = np.where(some & same, self._least, np.nan_to_num(self._mean))
        mean, std = np.where(some, mean, 0.0), np.where(same, 0.0, std)
        pairs = list(zip(mean.tolist(), std.tolist(), strict=True))
        return tuple(rounded(m, s) for m, s in pairs), tuple(rounded(s, s) for _, s in pairs)


class ListColumn:
    """Gathers what is wanted of one column's cells."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self._moments = VectorMoments()
        self._error: SemanticError | None = None

    def add(self, array: pa.Array) -> None:
        if self._error:
            return
        try:
            self._add(Lists(array, self.cells.column, self.cells.delimiter))
        except SemanticError as error:
            self._error = error

    def _add(self, lists: Lists) -> None:
        values = lists.vectors(self.cells.size or self._moments.size)
        if values.size:
            self._moments.add(values)

    def ends(self) -> ListStatistics:
        return ListStatistics(*self._moments.ends(), self._error)
