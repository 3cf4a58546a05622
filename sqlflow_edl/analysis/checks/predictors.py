"""Scores of single columns: how well each of them alone predicts the label.

A column that predicts it almost perfectly is the label in another form, or was recorded after it. Scores are taken
from a seeded sample of whole rows, so memory and time have a bound that does not grow with the table. Each row is
predicted from the *other* rows of the sample, so a column of all different values (an id) is no perfect predictor:

* by the rows of the same value: the mean of their labels, or their most frequent class. Exact for categories. Values
  that occur once count as one value: a text written only for rows of one class may differ in each of them.
* by the rows that are NULL as well, or are not. Columns filled in after the label is known have values for one class.
* of numbers, dates and times, by the neighbours in their order: the mean of the two adjacent rows, or, of classes, the
  number of class changes. That detects any function of the column, linear or not, without choosing bins.
* of numbers and a numeric label, by the correlation too, which is exact for a line where neighbours lie far apart.

A score is 1 minus the errors over the errors of the best constant guess: R² of a number; of classes the same for
mistakes, so that a rare class does not make every column look good. For classes, it is also computed with equal weights
of all classes: a column that equals the label in 99 % of the rows makes few mistakes in each class, yet with a rare
class nearly as many as the constant guess. The best score counts.

Neighbours count only if they are near-perfect. A lasting state, or a temperature, hardly differs between rows that are
adjacent in any column of times: below that, times are scored by NULL alone, and numbers by bins of many rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.errors import SemanticError
from edl.features.arrays import Bools, Floats, Ints, is_text, numbers, plain_array
from sqlflow_edl.analysis.checks.groups import disorder
from sqlflow_edl.analysis.checks.warning import (
    FEWEST_OTHERS,
    FEWEST_ROWS,
    LONGEST_TEXT,
    NEAR_PERFECT,
    SAMPLE_ROWS,
    SAMPLE_VALUES,
)
from sqlflow_edl.analysis.statistics.accumulators import RowSample

MOST_CLASSES = 20  # of a label, that whole numbers are compared with

BINS = 64  # of a column of numbers
FEWEST_OF_A_BIN = 20  # rows
FEW_TEXTS = 16
_INFINITE: tuple[tuple[float, Literal["left", "right"]], ...] = ((-np.inf, "right"), (np.inf, "left"))

Kind = Literal["copy", "names", "presence", "predictor"]


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one column.

    kind: equal to the label, its classes by other names, telling it by NULL or not NULL, or none of these. repeats:
    share of the pairs of rows with equal values.
    """

    column: str
    score: float
    kind: Kind
    repeats: float


class LabelledRows:
    """Collector of a seeded sample of rows, a batch at a time. columns: those other than the label."""

    def __init__(self, label: str, columns: Sequence[str], seed: int) -> None:
        self._label = label
        self._columns = [column for column in columns if column != label]
        most = max(1000, min(SAMPLE_ROWS, SAMPLE_VALUES // max(len(self._columns), 1)))
        self._rows = RowSample(most, seed)
        self._batches: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch, which has all columns and may have others."""
        chosen = self._rows.rows(batch.num_rows)
        batch = batch.select([self._label, *self._columns])
        if not isinstance(chosen, slice):
            batch = batch.take(pa.array(chosen))
        self._batches.append(
            pa.RecordBatch.from_arrays([_shorten(column) for column in batch.columns], batch.schema.names)
        )
        if (stays := self._rows.thin()) is not None:
            self._batches = self._table().filter(pa.array(stays)).combine_chunks().to_batches()

    def labels(self) -> Floats:
        """Return the labels of the sample as numbers, (n,), NaN for NULL; none if they are no numbers."""
        values = _numbers(_chunk(self._table()[self._label])) if self._batches else None
        return np.empty(0) if values is None else values

    def numbers(self, column: str) -> tuple[Floats, bool]:
        """Return the numbers of a column of the sample, (n,), NaN for NULL, and whether they are dates or times."""
        if not self._batches or column not in self._columns:
            return np.empty(0), False
        array = _chunk(self._table()[column])
        values = _numbers(array)
        return np.empty(0) if values is None else values, types.is_temporal(array.type)

    def scores(self, *, classes: bool) -> list[Score]:
        """Return the score of each column that can be compared; an empty list if there are too few rows.

        classes: the label has classes.
        """
        if not self._batches:
            return []
        table = self._table().combine_chunks()
        table = table.filter(pc.is_valid(table[self._label]))
        if len(table) < FEWEST_ROWS:
            return []
        # Shuffle, or ties of a column would keep the order of the table, and tables are often ordered by the label.
        table = table.take(np.random.default_rng(0).permutation(len(table)))
        label = _chunk(table[self._label])
        truth_numbers = _codes(label) if classes else numbers(label, self._label)
        if classes and len(table) - np.bincount(_codes(label)).max() < FEWEST_OTHERS:
            return []
        truth = _Label(label, _numbers(label))
        candidates = (
            _score(name, _chunk(table[name]), truth, truth_numbers, classes=classes) for name in self._columns
        )
        return [score for score in candidates if score is not None]

    def disorders(self, columns: Collection[str], *, classes: bool) -> dict[str, float]:
        """Return of whole numbers the share of the label's variance between them that is in no order."""
        if not columns or not self._batches:
            return {}
        table = self._table().combine_chunks()
        table = table.filter(pc.is_valid(table[self._label]))
        label = _chunk(table[self._label]) if len(table) else None
        if label is None:
            return {}
        of_rows = _one_hot(_codes(label)) if classes else numbers(label, self._label)[:, None]
        by_column = {}
        for column in columns:
            values = numbers(_chunk(table[column]), column)
            is_finite = np.isfinite(values) & np.isfinite(of_rows).all(axis=1)
            by_column[column] = disorder(values[is_finite], of_rows[is_finite])
        return by_column

    def _table(self) -> pa.Table:
        return pa.Table.from_batches(self._batches)


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _shorten(array: pa.Array) -> pa.Array:
    """Return the array; texts are cut to their first characters, in a type with offsets that do not overflow."""
    array = plain_array(array)
    if types.is_string(array.type) or types.is_large_string(array.type):
        return pc.utf8_slice_codeunits(array.cast(pa.large_string()), 0, LONGEST_TEXT)
    return array


class _Label(NamedTuple):
    """Values of the label, as they are and as numbers, if they are numbers."""

    values: pa.Array
    numbers: Floats | None


def _score(
    column: str, array: pa.Array, label: _Label, truth_numbers: Floats | Ints, *, classes: bool
) -> Score | None:
    if types.is_nested(array.type) or array.null_count == len(array):
        return None
    codes, ordered = _codes(array), _numbers(array)
    often = np.bincount(codes).astype(np.float64)
    repeats = float((often * (often - 1)).sum()) / (len(codes) * (len(codes) - 1))
    if _equal(array, ordered, label):
        return Score(column, 1.0, "copy", repeats)
    guess: _Classes | _Values
    if classes:
        guess = _Classes(truth_numbers.astype(np.int64))
        if guess.are_named_by(codes):
            return Score(column, 1.0, "names", repeats)
    else:
        guess = _Values(truth_numbers.astype(np.float64))
        if not guess.differ:
            return None
    by_null = guess.by_value(array.is_valid().to_numpy(zero_copy_only=False)) if array.null_count else 0.0
    by_value = guess.by_value(_pool_single_values(codes))
    order = None if ordered is None else np.argsort(ordered, kind="stable")  # NaN last
    by_line = 0.0 if ordered is None else guess.by_line(ordered)
    best = max(by_value, by_line, 0.0 if order is None else guess.by_order(order))
    if best < NEAR_PERFECT:
        is_time = types.is_temporal(array.type)
        by_bins = 0.0
        if ordered is not None and order is not None and not is_time:
            by_bins = max(by_line, guess.by_value(_bins(ordered, order)))
        best = max(by_null, by_bins, 0.0 if is_time else by_value)
    return Score(column, best, "presence" if by_null >= best else "predictor", repeats)


def _pool_single_values(codes: Ints) -> Ints:
    """Return the codes with one for all values that occur once."""
    once = np.bincount(codes) == 1
    pooled: Ints = np.where(once[codes], len(once), codes)
    return pooled


def _bins(ordered: Floats, order: Ints) -> Ints:
    """Return the number of each row's bin, with about the same number of rows in each; NaN has a bin of its own.

    order: the rows by their values. The values are sorted already, so no quantile needs another pass over them.
    """
    values = ordered[order]
    numbers_end = int(np.searchsorted(values, np.nan))
    low, high = (int(np.searchsorted(values[:numbers_end], end, side)) for end, side in _INFINITE)
    count = min(BINS, (high - low) // FEWEST_OF_A_BIN)
    places = low + (high - low - 1) * np.arange(1, count) / max(count, 1)
    below = places.astype(np.int64)
    edges = values[below] + (values[below + 1] - values[below]) * (places - below)
    bins = np.empty(len(order), np.int64)
    bins[order] = np.searchsorted(edges, values, "right")
    bins[order[numbers_end:]] = len(edges) + 1
    return bins


def _codes(array: pa.Array) -> Ints:
    """Return a number for each distinct value, NULL included."""
    encoded = array.dictionary_encode(null_encoding="encode")
    codes: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _one_hot(codes: Ints) -> Floats:
    """Return a column for each of the most frequent classes but one, which the others determine."""
    often = np.argsort(-np.bincount(codes), kind="stable")[:MOST_CLASSES]
    matrix: Floats = (codes[:, None] == often[: max(len(often) - 1, 1)]).astype(np.float64)
    return matrix


def _numbers(array: pa.Array) -> Floats | None:
    """Return numbers, dates, times and numeric text as float64, NaN for NULL; None for other values."""
    if not is_text(array.type):
        try:
            return numbers(array, "")
        except SemanticError:
            return None
    try:
        # A cast composes an error for each text that is no number, so a few texts are tried before all of them.
        pc.utf8_trim_whitespace(array[:FEW_TEXTS]).cast(pa.float64())
        return numbers(pc.utf8_trim_whitespace(array).cast(pa.float64()), "")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _equal(array: pa.Array, ordered: Floats | None, label: _Label) -> bool:
    """Return True if the values equal the label's, perhaps in another type. ordered: the values as numbers."""
    if ordered is not None and label.numbers is not None:
        return bool(np.array_equal(ordered, label.numbers))
    if not is_text(array.type) and not is_text(label.values.type):
        return False
    if _is_number(array.type) or _is_number(label.values.type):
        return False  # texts of numbers are numbers, and one of the two has none
    try:
        text, label_text = (pc.utf8_lower(column.cast(pa.large_string())) for column in (array, label.values))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return bool(text.equals(label_text))


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


class _Classes:
    """Guesses of a label with classes. codes: the class of each row, from 0."""

    def __init__(self, codes: Ints) -> None:
        self._codes = codes
        self._sizes = np.bincount(codes)

    def are_named_by(self, values: Ints) -> bool:
        """Return True if each class has one value, and each value one class."""
        cells = np.unique(values * len(self._sizes) + self._codes)
        return len(cells) == len(np.unique(values)) == len(self._sizes)

    def by_value(self, values: Ints | Bools) -> float:
        """Return the score by the most frequent class of the other rows with the same value."""
        equal = np.ones(len(self._sizes))
        return max(
            self._over_guessing(self._mistakes(values, equal)),
            self._balance_score(self._mistakes(values, 1 / self._sizes)),
        )

    def by_line(self, ordered: Floats) -> float:
        """Return no score: classes have no line."""
        return 0.0

    def by_order(self, order: Ints) -> float:
        """Return the score by the neighbours in order.

        A wrong class among others is two changes; each class has one border.
        """
        changes = np.count_nonzero(np.diff(self._codes[order]))
        return 1.0 - max(int(changes) - len(self._sizes) + 1, 0) / 2 / self._other_rows

    def _mistakes(self, values: Ints | Bools, weights: Floats) -> Ints:
        """Return the rows of each class for which another class leads among the other rows with the same value.

        weights: of a row, by class.
        """
        count = len(self._sizes)
        cells, sizes = np.unique(values.astype(np.int64) * count + self._codes, return_counts=True)
        values, classes = np.divmod(cells, count)
        weight = sizes * weights[classes]
        order = np.lexsort((-weight, values))
        values, classes, sizes, weight = values[order], classes[order], sizes[order], weight[order]
        first = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
        has_second = np.r_[values[1:] == values[:-1], False][first]
        second = np.zeros(len(first))
        second[has_second] = weight[first[has_second] + 1]
        leads = (
            weight[first] - weights[classes[first]] > second
        )  # its class still leads without the row itself
        right = np.bincount(classes[first], sizes[first] * leads, minlength=count)
        mistakes: Ints = self._sizes - right.astype(np.int64)
        return mistakes

    @property
    def _other_rows(self) -> int:
        """Number of rows for which the most frequent class is a mistake."""
        return int(self._sizes.sum() - self._sizes.max())

    def _over_guessing(self, mistakes: Ints) -> float:
        return 1.0 - float(mistakes.sum()) / self._other_rows

    def _balance_score(self, mistakes: Ints) -> float:
        """Return the score with the same weight of each class: a constant guess has one class right."""
        return 1.0 - float((mistakes / self._sizes).sum()) / (len(self._sizes) - 1)


class _Values:
    """Guesses of a label of numbers."""

    def __init__(self, truth: Floats) -> None:
        self._wanted = truth

    @property
    def differ(self) -> bool:
        return bool(np.isfinite(self._wanted).all() and self._wanted.min() < self._wanted.max())

    def by_value(self, values: Ints | Bools) -> float:
        """Return the score by the mean of the other rows with the same value, or of all where there is none."""
        codes, truth = values.astype(np.int64), self._wanted
        sums, sizes = np.bincount(codes, truth)[codes], np.bincount(codes)[codes]
        means = np.where(sizes > 1, (sums - truth) / np.maximum(sizes - 1, 1), truth.mean())
        return self._r2(means)

    def by_order(self, order: Ints) -> float:
        """Return the score by the mean of the two adjacent rows, at the ends of one."""
        labels = self._wanted[order]
        means = np.empty_like(labels)
        means[1:-1] = (labels[:-2] + labels[2:]) / 2
        means[0], means[-1] = labels[1], labels[-2]
        predicted = np.empty_like(means)
        predicted[order] = means
        return self._r2(predicted)

    def by_line(self, ordered: Floats) -> float:
        """Return the score by the correlation."""
        if not np.isfinite(ordered).all() or ordered.min() == ordered.max():
            return 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.nan_to_num(np.corrcoef(ordered, self._wanted)[0, 1])) ** 2

    def _r2(self, predicted: Floats) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            errors = np.square(self._wanted - predicted).sum()
            return float(1.0 - errors / np.square(self._wanted - self._wanted.mean()).sum())
