"""Scores of single columns: how well each of them alone predicts the label.

A column that predicts it almost perfectly is the label in another form, or was recorded after it. Scores are taken
from a seeded sample of whole rows, so memory and time have a bound that does not grow with the table. Each row is
predicted from the *other* rows of the sample, so a column of all different values (an id) is no perfect predictor:

* by the rows of the same value: the mean of their labels, or their most frequent class. Exact for categories.
* of numbers, dates and times, by the neighbours in their order: the mean of the two adjacent rows, or, of classes, the
  number of class changes. That detects any function of the column, linear or not, without choosing bins.
* of numbers and a numeric label, by the correlation too, which is exact for a line where neighbours lie far apart.

A score is 1 minus the errors over those of the best constant guess: R² of a number; of classes the same for mistakes,
so that a rare class does not make every column look good. The best of the three counts.
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
from edl.features.arrays import Floats, Ints, is_text, numbers, plain
from sqlflow_edl.analysis.checks.groups import disorder
from sqlflow_edl.analysis.checks.thresholds import (
    FEWEST_OTHERS,
    FEWEST_ROWS,
    LONGEST_TEXT,
    SAMPLE_ROWS,
    SAMPLE_VALUES,
)
from sqlflow_edl.analysis.statistics.accumulators import RowSample

MOST_CLASSES = 20  # of a label, that whole numbers are compared with

Kind = Literal["copy", "names", "predictor"]


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one column.

    kind: equal to the label, its classes by other names, or neither. repeats: share of the pairs of rows with equal
    values.
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
            pa.RecordBatch.from_arrays([_short(each) for each in batch.columns], batch.schema.names)
        )
        if (stays := self._rows.thin()) is not None:
            self._batches = self._table().filter(pa.array(stays)).combine_chunks().to_batches()

    def labels(self) -> Floats:
        """Return the labels of the sample as numbers, (n,), NaN for NULL; none if they are no numbers."""
        found = _numbers(_chunk(self._table()[self._label])) if self._batches else None
        return np.empty(0) if found is None else found

    def numbers(self, column: str) -> tuple[Floats, bool]:
        """Return the numbers of a column of the sample, (n,), NaN for NULL, and whether they are dates or times."""
        if not self._batches or column not in self._columns:
            return np.empty(0), False
        array = _chunk(self._table()[column])
        found = _numbers(array)
        return np.empty(0) if found is None else found, types.is_temporal(array.type)

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
        # Shuffle, or ties of a column would keep the order of the table, which is often that of the label.
        table = table.take(np.random.default_rng(0).permutation(len(table)))
        label = _chunk(table[self._label])
        wanted = _codes(label) if classes else numbers(label, self._label)
        if classes and len(table) - np.bincount(_codes(label)).max() < FEWEST_OTHERS:
            return []
        truth = _Label(label, _numbers(label))
        found = (_score(name, _chunk(table[name]), truth, wanted, classes=classes) for name in self._columns)
        return [each for each in found if each is not None]

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
        found = {}
        for column in columns:
            values = numbers(_chunk(table[column]), column)
            known = np.isfinite(values) & np.isfinite(of_rows).all(axis=1)
            found[column] = disorder(values[known], of_rows[known])
        return found

    def _table(self) -> pa.Table:
        return pa.Table.from_batches(self._batches)


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _short(array: pa.Array) -> pa.Array:
    """Return the array; texts are cut to their first characters, in a type whose offsets do not overflow."""
    array = plain(array)
    if types.is_string(array.type) or types.is_large_string(array.type):
        return pc.utf8_slice_codeunits(array.cast(pa.large_string()), 0, LONGEST_TEXT)
    return array


class _Label(NamedTuple):
    """Values of the label, as they are and as numbers, if they are numbers."""

    values: pa.Array
    numbers: Floats | None


def _score(
    column: str, array: pa.Array, label: _Label, wanted: Floats | Ints, *, classes: bool
) -> Score | None:
    if types.is_nested(array.type) or array.null_count == len(array):
        return None
    codes, ordered = _codes(array), _numbers(array)
    often = np.bincount(codes).astype(np.float64)
    repeats = float((often * (often - 1)).sum()) / (len(codes) * (len(codes) - 1))
    if _equal(array, ordered, label):
        return Score(column, 1.0, "copy", repeats)
    if classes:
        by_value, names = _class_purity(codes, wanted.astype(np.int64))
        by_order = _class_runs(ordered, wanted.astype(np.int64)) if ordered is not None else 0.0
        return Score(column, max(by_value, by_order), "names" if names else "predictor", repeats)
    wanted = wanted.astype(np.float64)
    if not np.isfinite(wanted).all() or wanted.min() == wanted.max():
        return None
    scores = [_r2(wanted, _others_mean(codes, wanted))]
    if ordered is not None:
        scores += (_r2(wanted, _neighbours_mean(ordered, wanted)), _correlation(ordered, wanted))
    return Score(column, max(scores), "predictor", repeats)


def _codes(array: pa.Array) -> Ints:
    """Return a number for each distinct value, NULL included."""
    encoded = array.dictionary_encode(null_encoding="encode")
    codes: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _one_hot(codes: Ints) -> Floats:
    """Return a column for each of the most frequent classes but one, which the others determine."""
    often = np.argsort(-np.bincount(codes), kind="stable")[:MOST_CLASSES]
    found: Floats = (codes[:, None] == often[: max(len(often) - 1, 1)]).astype(np.float64)
    return found


def _numbers(array: pa.Array) -> Floats | None:
    """Return numbers, dates, times and numeric text as float64, NaN for NULL; None for other values."""
    if not is_text(array.type):
        try:
            return numbers(array, "")
        except SemanticError:
            return None
    try:
        return numbers(pc.utf8_trim_whitespace(array).cast(pa.float64()), "")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _equal(array: pa.Array, ordered: Floats | None, label: _Label) -> bool:
    """Return True if the values are those of the label, perhaps in another type. ordered: the values as numbers."""
    if ordered is not None and label.numbers is not None:
        return bool(np.array_equal(ordered, label.numbers))
    if not is_text(array.type) and not is_text(label.values.type):
        return False
    try:
        text, wanted = (pc.utf8_lower(each.cast(pa.large_string())) for each in (array, label.values))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return bool(text.equals(wanted))


# Classes ---------------------------------------------------------------------------------------------------


def _class_purity(codes: Ints, classes: Ints) -> tuple[float, bool]:
    """Return the score by the most frequent class of the other rows with the same value.

    The second result is true if the values name the classes.
    """
    count = int(classes.max()) + 1
    cells, sizes = np.unique(codes * count + classes, return_counts=True)
    values = cells // count
    order = np.lexsort((-sizes, values))
    values, sizes = values[order], sizes[order]
    first = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    second = np.zeros(len(first), dtype=np.int64)
    has_second = np.r_[values[1:] == values[:-1], False][first]
    second[has_second] = sizes[first[has_second] + 1]
    right = sizes[first][sizes[first] - 1 > second].sum()  # its class still leads without the row itself
    names = len(cells) == len(first) == count
    return _over_guessing(len(codes) - int(right), classes), names


def _class_runs(ordered: Floats, classes: Ints) -> float:
    """Return the score by the neighbours in order.

    A wrong class among others is two changes; each class has one border.
    """
    changes = np.count_nonzero(np.diff(classes[np.argsort(ordered, kind="stable")]))
    borders = int(np.count_nonzero(np.bincount(classes))) - 1
    return _over_guessing(max(int(changes) - borders, 0) / 2, classes)


def _over_guessing(mistakes: float, classes: Ints) -> float:
    return 1.0 - mistakes / (len(classes) - int(np.bincount(classes).max()))


# Numbers ---------------------------------------------------------------------------------------------------


def _others_mean(codes: Ints, wanted: Floats) -> Floats:
    """Return the mean label of the other rows with the same value; the overall mean where there is none."""
    sums, sizes = np.bincount(codes, wanted)[codes], np.bincount(codes)[codes]
    means: Floats = np.where(sizes > 1, (sums - wanted) / np.maximum(sizes - 1, 1), wanted.mean())
    return means


def _neighbours_mean(ordered: Floats, wanted: Floats) -> Floats:
    """Return the mean label of the two adjacent rows in the column's order; at the ends that of the one neighbour."""
    order = np.argsort(ordered, kind="stable")
    labels = wanted[order]
    means = np.empty_like(labels)
    means[1:-1] = (labels[:-2] + labels[2:]) / 2
    means[0], means[-1] = labels[1], labels[-2]
    found = np.empty_like(means)
    found[order] = means
    return found


def _correlation(ordered: Floats, wanted: Floats) -> float:
    if not np.isfinite(ordered).all() or ordered.min() == ordered.max():
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.nan_to_num(np.corrcoef(ordered, wanted)[0, 1])) ** 2


def _r2(wanted: Floats, predicted: Floats) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(1.0 - np.square(wanted - predicted).sum() / np.square(wanted - wanted.mean()).sum())
