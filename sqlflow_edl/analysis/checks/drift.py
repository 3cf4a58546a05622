"""Drift: how far the values of a query are from those that a model was fitted to, column by column.

Numbers are counted between the deciles of the training rows, categories by their most frequent values. The distance of
two sets of counts is the population stability index (Siddiqi 2006, "Credit Risk Scorecards", with the usual limits 0.1
and 0.25). Of n and m rows of one distribution in B bins it is about (1/n + 1/m) times a chi-square with B - 1 degrees
of freedom (Yurdakul and Naranjo 2020, "Statistical properties of the population stability index"), so that few rows
are no evidence. Shares of NULLs, of unseen values and of numbers outside of the training range are compared by the
interval of Agresti and Caffo (2000). Unseen values are expected as often as the training rows have values that occur
once (Good 1953).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from pyarrow import types

from edl import spec
from edl.features.arrays import Ints, numbers, plain_array
from edl.features.categories import encode_unknown_as_null, level_encoder
from edl.models.fitting import Bins, ColumnSummary
from sqlflow_edl.analysis.statistics.histogram import merge_bins

Verdict = Literal["drifted", "shifted", "stable", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("drifted", "shifted", "stable", "unknown")

SHIFTED, DRIFTED = 0.1, 0.25  # population stability index
SHARES = (0.02, 0.1)  # of the rows, for the same two verdicts
_CHANCE = 3.09  # normal deviate that chance exceeds once in 1,000 columns
_TWO_SIDED = 3.29
_SMOOTHING = 0.5  # added to each count: no share is 0, because the logarithm of 0 is infinite


@dataclass(frozen=True, slots=True)
class ColumnDrift:
    """Comparison of one column. Shares are of the rows; None for what is not known of the column.

    why: properties that differ, or the reason why nothing is compared. then, now: least and largest number of the
    training rows and of these.
    """

    column: str
    verdict: Verdict
    why: str
    psi: float | None
    nulls_then: float
    nulls_now: float | None
    unseen: float | None
    outside: float | None
    then: tuple[float | None, float | None]
    now: tuple[float | None, float | None]


def compare(
    batches: Iterable[pa.RecordBatch],
    summaries: Mapping[str, ColumnSummary],
    features: Iterable[spec.Feature],
    *,
    limit: float = DRIFTED,
) -> list[ColumnDrift]:
    """Compare the rows with the summaries, by column of the batches; the largest differences come first.

    features: of the model, over the same columns. limit: population stability index from which on a column drifted.
    Raises SemanticError for a column if its type has changed beyond comparison.
    """
    categories = (spec.category_of(feature) for feature in features)
    vocabularies = {
        source: category
        for category in categories
        if spec.is_category(category) and category.levels
        for source in spec.sources(category)
    }
    columns = [_ComparedColumn(name, summary, vocabularies.get(name)) for name, summary in summaries.items()]
    for batch in batches:
        for column in columns:
            column.add(batch)
    drifts = [column.ends(limit) for column in columns]
    return sorted(
        drifts,
        key=lambda column_drift: (
            VERDICTS.index(column_drift.verdict),
            -(column_drift.psi or 0.0),
        ),
    )


class _ComparedColumn:
    """Counts of one column's values, in the bins of its summary."""

    def __init__(self, name: str, then: ColumnSummary, vocabulary: spec.Category | None) -> None:
        self.name = name
        self.then = then
        self.temporal = False
        self.rows = 0
        self.nulls = 0
        self.unseen = 0
        self.outside = 0
        self.min, self.max = math.inf, -math.inf
        few = then.distinct is not None and not then.countless and then.distinct <= len(then.top)
        self.bins = None if few else _bins(then)
        top = tuple(str(value).lower() if isinstance(value, bool) else value for value, _ in then.top)
        self.encode_top = level_encoder(name, top) if top and self.bins is None else None
        self.counts = np.zeros(len(self.bins.counts) if self.bins else len(top) + 1, dtype=np.int64)
        self.encode_known = encode_unknown_as_null(vocabulary) if vocabulary else None
        self.missing = vocabulary.size if vocabulary else 0
        # A shorter vocabulary leaves out values of the training rows too.
        self.knows_all = vocabulary is not None and not then.countless and then.distinct == vocabulary.size

    def add(self, batch: pa.RecordBatch) -> None:
        array = plain_array(batch.column(self.name))
        nulls = array.null_count
        if types.is_temporal(array.type):  # time moves on: later dates are no change
            self.temporal = True
            self.rows += len(array)
            self.nulls += nulls
            return
        least, most = self.then.min, self.then.max
        if self.bins is not None or least is not None or types.is_floating(array.type):
            values = numbers(array, self.name)
            values = values[np.isfinite(values)]
            nulls = len(array) - len(values)
            if len(values):
                self.min, self.max = min(self.min, float(values.min())), max(self.max, float(values.max()))
            if least is not None and most is not None:
                self.outside += int(((values < least) | (values > most)).sum())
            if self.bins is not None:
                places = np.searchsorted(self.bins.edges, values, side="right")
                self.counts += np.bincount(places, minlength=len(self.counts))
        self.rows += len(array)
        self.nulls += nulls
        if self.encode_top is not None:
            self.counts += np.bincount(_ids(self.encode_top(batch)), minlength=len(self.counts))
            self.counts[-1] -= nulls
        if self.encode_known is not None:
            self.unseen += int((_ids(self.encode_known(batch)) == self.missing).sum()) - nulls

    def ends(self, limit: float) -> ColumnDrift:
        then = ColumnSummary(self.then.rows, self.then.nulls) if self.temporal else self.then
        before = self._training_counts()
        psi, chance = _stability(before, self.counts)
        levels = {
            "distribution": (psi is not None and psi >= chance) * _level(psi or 0.0, (SHIFTED, limit)),
            "NULLs": _level(abs(self._more(self.nulls, then.nulls)), SHARES),
            "unseen values": self.knows_all
            * _level(self._more(self.unseen, self._expected_unseen()), SHARES),
            "outside of the range": _level(self._more(self.outside, 0), SHARES),
        }
        worst = max(levels.values())
        verdict: Verdict = ("stable", "shifted", "drifted")[worst]
        why = ", ".join(name for name, level in levels.items() if level and level == worst)
        if not worst and (psi is None or self.temporal):
            verdict, why, psi = "unknown", self._obstacle(before), None
        elif not worst and psi is not None and psi >= SHIFTED:
            why = "too few rows to tell"
        has_range = then.min is not None and then.max is not None
        share = 1 / self.rows if self.rows else None
        return ColumnDrift(
            self.name,
            verdict,
            why,
            psi,
            then.nulls / max(then.rows, 1),
            self.nulls * share if share else None,
            self.unseen * share if share and self.encode_known else None,
            self.outside * share if share and has_range else None,
            (then.min, then.max),
            (self.min, self.max) if self.min <= self.max else (None, None),
        )

    def _training_counts(self) -> Sequence[int]:
        """Return the counts of the training rows in the same bins; empty if there are none."""
        if self.bins is not None:
            return self.bins.counts
        counts = [count for _, count in self.then.top]
        return [*counts, self.then.rows - self.then.nulls - sum(counts)] if counts else []

    def _expected_unseen(self) -> int:
        """Return the number of unseen values to expect among as many rows as the training had."""
        return (self.then.distinct or 0) if self.then.once is None else self.then.once

    def _more(self, count: int, before: int) -> float:
        return _difference(count, self.rows, before, self.then.rows)

    def _obstacle(self, before: Sequence[int]) -> str:
        """Name the reason why nothing but NULLs is compared."""
        if not self.rows:
            return "no rows"
        if self.temporal:
            return "a date or time"
        if sum(before):
            return "only NULLs"
        return "too many values" if self.then.countless else "no statistics of its values"


def _bins(then: ColumnSummary) -> Bins | None:
    """Return the bins of a column of numbers; models of earlier versions have a histogram alone."""
    if then.bins is not None:
        return then.bins
    return merge_bins(then.histogram) if then.histogram is not None else None


def _ids(encoded: object) -> Ints:
    assert isinstance(encoded, np.ndarray)  # noqa: S101 - of a vocabulary, each row has one id
    return encoded


def _level(value: float, limits: tuple[float, float]) -> int:
    """Return 0, 1 or 2: below both limits, from the first on, from the second on."""
    shifted, drifted = limits
    return 2 if value >= drifted else int(value >= shifted)


def _stability(before: Sequence[int], after: Ints) -> tuple[float | None, float]:
    """Return the population stability index, and what chance exceeds once in 1,000 times. None without values."""
    rows_before, rows_after, bins = sum(before), int(after.sum()), len(before)
    if not rows_before or not rows_after:
        return None, 0.0
    expected = (np.asarray(before) + _SMOOTHING) / (rows_before + _SMOOTHING * bins)
    actual = (after + _SMOOTHING) / (rows_after + _SMOOTHING * bins)
    freedom = max(bins - 1, 1)
    spread = 2 / (9 * freedom)  # the cube root of a chi-square is about normal (Wilson and Hilferty 1931)
    quantile = freedom * (1 - spread + _CHANCE * math.sqrt(spread)) ** 3
    index = float(((actual - expected) * np.log(actual / expected)).sum())
    return index, quantile * (1 / rows_before + 1 / rows_after)


def _difference(count: int, rows: int, before: int, rows_before: int) -> float:
    """Return the difference of two shares, or 0 if chance may explain it."""
    if not rows or not rows_before:
        return 0.0
    now, then = (count + 1) / (rows + 2), (before + 1) / (rows_before + 2)
    spread = math.sqrt(now * (1 - now) / (rows + 2) + then * (1 - then) / (rows_before + 2))
    return count / rows - before / rows_before if abs(now - then) > _TWO_SIDED * spread else 0.0
