"""Bins of a number, for its piecewise-linear encoding."""

from __future__ import annotations

import numpy as np

from edl.features.arrays import Floats

DEFAULT_BINS = 16  # keeps the boundaries on the page of a program
LEAST_BINS = 2
WIDEST = 8192  # numbers that all columns become together; the time of a step grows with them


def bins_of_each(columns: int) -> int:
    """Return the bins of each of so many numbers that are encoded in bins beside the number itself."""
    return min(max(WIDEST // max(columns, 1) - 1, LEAST_BINS), DEFAULT_BINS)


def boundaries(values: Floats, bins: int) -> tuple[float, ...]:
    """Return ascending values between which about equal shares of all values lie, in about `bins` bins.

    Few distinct values are all boundaries. A value that occurs more often than a bin's share is a boundary together
    with the values next to it, so that a model can tell it from both.
    """
    distinct = np.unique(values)
    if len(distinct) <= bins + 1:
        return tuple(distinct.tolist())
    places = np.linspace(0, len(values) - 1, bins + 1).round().astype(np.int64)
    cuts, times = np.unique(np.partition(values, places)[places], return_counts=True)
    often = np.searchsorted(distinct, cuts[times > 1])
    neighbours = np.clip(np.concatenate((often - 1, often + 1)), 0, len(distinct) - 1)
    return tuple(np.union1d(cuts, distinct[neighbours]).tolist())
