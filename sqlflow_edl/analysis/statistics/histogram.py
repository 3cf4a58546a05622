"""Histogram of the numbers of a column. Their range is not known before they are read.
Bins are as wide as a power of two and begin at multiples of it, so bins merge exactly in pairs when the range grows.
The result depends on the values alone, not on their order or on batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from edl.features.arrays import Floats, Ints
from edl.models.fitting import Bins, Histogram

MOST_BINS = 48
_TENTHS = np.arange(1, 10) / 10
_PRECISION = 45  # bits of the largest value that bins resolve: a bin's number is exact in float64


@dataclass(slots=True)
class HistogramBuilder:
    """Histogram under construction: counts of bins from number `first` on, of width 2 ** `exponent`."""

    min: float = math.inf
    max: float = -math.inf
    exponent: int = 0
    first: int = 0
    counts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, values: Floats) -> None:
        """Add finite values."""
        if not len(values):
            return
        self.min, self.max = min(self.min, float(values.min())), max(self.max, float(values.max()))
        exponent, first, bins = _grid(self.min, self.max)
        counts = self._merge_bins(exponent, first, bins)
        counts += np.bincount(_bin_indices(values, exponent) - first, minlength=bins)
        self.exponent, self.first, self.counts = exponent, first, counts

    def end(self, *, whole: bool = False) -> Histogram | None:
        """Return the histogram; None without values, or if their bins are no numbers of float64.

        whole: the values are whole numbers, so bins are not narrower than 1.
        """
        if not len(self.counts):
            return None
        if whole and self.exponent < 0:
            first = math.floor(self.min)
            self.counts = self._merge_bins(0, first, math.floor(self.max) - first + 1)
            self.exponent, self.first = 0, first
        width = math.ldexp(1.0, self.exponent)
        start = self.first * width
        if not (width and math.isfinite(start)):  # at the ends of float64's range
            return None
        return Histogram(start, width, tuple(self.counts.tolist()))

    def _merge_bins(self, exponent: int, first: int, bins: int) -> Ints:
        """Return the counts in wider bins."""
        if not len(self.counts):
            return np.zeros(bins, dtype=np.int64)
        old = np.arange(self.first, self.first + len(self.counts)) >> min(exponent - self.exponent, 62)
        return np.bincount(old - first, self.counts, bins).astype(np.int64)


def _grid(least: float, most: float) -> tuple[int, int, int]:
    """Return the exponent, the first bin and the number of bins of the narrowest bins that are not too many."""
    largest = max(abs(least), abs(most))
    exponent = math.frexp(largest)[1] - _PRECISION if largest else 0
    span = most / 2 - least / 2  # half of it, which cannot overflow
    if span > 0:
        exponent = max(exponent, math.frexp(span / MOST_BINS)[1])
    while True:
        first, last = _bin_indices(np.array([least, most]), exponent).tolist()
        if last - first < MOST_BINS:
            return exponent, first, last - first + 1
        exponent += 1


def _bin_indices(values: Floats, exponent: int) -> Ints:
    """Return the numbers of the values' bins. The quotient of a number just below 0 may underflow to 0."""
    floors = np.floor(np.ldexp(values, -exponent))
    return np.where(values < 0, np.minimum(floors, -1), floors).astype(np.int64)


def deciles(values: Floats) -> Bins | None:
    """Return the counts of finite values between their distinct deciles; None without values."""
    if not len(values):
        return None
    # Edges are values, so that equal numbers stay together and a column of a few of them has a bin for each.
    edges = np.unique(np.quantile(values, _TENTHS, method="inverted_cdf"))
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    return Bins(tuple(edges.tolist()), tuple(counts.tolist()))


def merge_bins(histogram: Histogram) -> Bins:
    """Return bins of about a tenth of the numbers each, made of whole bins of the histogram."""
    below = np.cumsum(histogram.counts)
    ends = np.unique(np.searchsorted(below, _TENTHS * below[-1]))
    ends = ends[ends < len(below) - 1]  # the last one ends all
    edges = histogram.start + histogram.width * (ends + 1)
    return Bins(tuple(edges.tolist()), tuple(np.diff(below[ends], prepend=0, append=below[-1]).tolist()))
