"""Confusion matrix as a grid: a line for each true class, a column for each predicted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlflow_edl.reports.text import percent


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of the grid.

    columns: names, and True for columns of numbers. total: number of classified rows.
    """

    columns: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    total: float


def grid(label: str, pairs: Sequence[Sequence[Any]]) -> Grid | None:
    """Arrange the matrix, with the recall of each class at the right and the precision below.

    pairs: rows of true class, predicted class, row count and share. Returns None if a pair of classes is
    missing.
    """
    classes = list(dict.fromkeys(row[0] for row in pairs))
    counts = {(row[0], row[1]): row[2] or 0 for row in pairs}
    if len(counts) != len(classes) ** 2 or any((each, each) not in counts for each in classes):
        return None
    lines = []
    for true in classes:
        line = [counts[true, predicted] for predicted in classes]
        lines.append([str(true), *map(_count, line), _share(counts[true, true], sum(line))])
    sums = {each: sum(counts[true, each] for true in classes) for each in classes}
    lines.append(["precision", *(_share(counts[each, each], sums[each]) for each in classes), ""])
    columns = [(f"{label}: true \\ predicted", False), *((str(each), True) for each in classes)]
    return Grid([*columns, ("recall", True)], lines, sum(sums.values()))


def _count(rows: float) -> str:
    return f"{rows:,.10g}"


def _share(part: float, whole: float) -> str:
    """Format a share, or return an empty string if the whole is zero."""
    return percent(part / whole) if whole else ""
