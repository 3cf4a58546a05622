"""Confusion matrix as a grid: a line for each true class, a column for each predicted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlflow_edl.reports.text import percent


@dataclass(frozen=True, slots=True)
class CountGrid:
    """Cells of the grid.

    columns: names, and True for columns of numbers. total: number of classified rows.
    """

    columns: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    total: float


def grid(label: str, pairs: Sequence[Sequence[Any]]) -> CountGrid | None:
    """Arrange the matrix, with the recall of each class at the right and the precision below.

    pairs: rows of true class, predicted class, row count and share. Returns None if a pair of classes is
    missing.
    """
    if (classes_and_counts := matrix(pairs)) is None:
        return None
    classes, counts = classes_and_counts
    lines = [
        [str(true), *map(_count, line), _share(line[place], sum(line))]
        for place, (true, line) in enumerate(zip(classes, counts, strict=True))
    ]
    sums = [sum(column) for column in zip(*counts, strict=True)]
    right = [_share(counts[place][place], total) for place, total in enumerate(sums)]
    lines.append(["precision", *right, ""])
    columns = [(f"{label}: true \\ predicted", False), *((str(class_), True) for class_ in classes)]
    return CountGrid([*columns, ("recall", True)], lines, sum(sums))


def matrix(pairs: Sequence[Sequence[Any]]) -> tuple[list[Any], list[list[float]]] | None:
    """Return the classes, and the rows by true and predicted class. None if a pair of classes is missing."""
    classes = list(dict.fromkeys(row[0] for row in pairs))
    counts = {(row[0], row[1]): row[2] or 0 for row in pairs}
    if len(counts) != len(classes) ** 2 or any((class_, class_) not in counts for class_ in classes):
        return None
    return classes, [[counts[true, predicted] for predicted in classes] for true in classes]


def _count(rows: float) -> str:
    return f"{rows:,.10g}"


def _share(part: float, whole: float) -> str:
    """Format a share, or return an empty string if the whole is zero."""
    return percent(part / whole) if whole else ""
