"""Fitting pass: statistics of the training rows for feature columns, from one stream over them.

The definitions are the same for every source:

* NULL, and a number that is NaN or infinite, counts as null and enters no other statistic;
* the deviation is the population's; mean and deviation keep nine significant digits (of the deviation);
* quantiles are of type 7 (linear between order statistics), over all rows, or a seeded sample of half a million to a
  million of them if there are more;
* statistics of cells with several values are over the items; the first cell that cannot be read ends them, and
  is kept as the error that the feature then raises, with its source span;
* values are ordered by count, most frequent first, then text by its bytes and numbers by size.

Only the statistics that a feature wants (`Want`) are collected, because they take most of the time.
"""

from __future__ import annotations

import bisect
import enum
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.errors import SemanticError
from edl.features.arrays import Bools, Floats, Ints, integers, is_text, numbers, plain_array, texts
from edl.features.lists import Lists
from edl.models.fitting import Bins, Histogram
from sqlflow_edl.analysis.checks.warning import UNIQUE_SAMPLE
from sqlflow_edl.analysis.columns.binning import boundaries
from sqlflow_edl.analysis.columns.cells import Cells, Items
from sqlflow_edl.analysis.statistics.accumulators import (
    Calendar,
    Moments,
    RowSample,
    TextShape,
    Uniqueness,
    ValueCounter,
    VectorMoments,
)
from sqlflow_edl.analysis.statistics.histogram import HistogramBuilder, deciles

MOST_DISTINCT = 200_000  # limit of the distinct values counted in a column
SAMPLE_ROWS = 1_000_000
# of all columns together: 512 MiB; with more than 64 columns each has a smaller sample
SAMPLE_VALUES = 1 << 26
BINNED_ROWS = 20_000  # sample for the bins of a column that wants no quantiles


Vector = tuple[tuple[float, ...], tuple[float, ...]]
Values = tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]


class Want(enum.Flag):
    """Statistics that a feature column is fitted with. A text column has no moments and no quantiles."""

    NONE = 0
    MOMENTS = enum.auto()  # min, max, mean, std, integers, histogram, bins
    QUANTILES = enum.auto()  # of a large sample; bins
    COUNTS = enum.auto()  # counts, distinct
    TEXT = enum.auto()  # longest, delimiter
    CALENDAR = enum.auto()  # years, parts
    UNIQUE = enum.auto()  # unique, span; of integers and text


@dataclass(frozen=True, slots=True, eq=False)
class ValueCounts:
    """Distinct values, most frequent first, and their counts.

    values: all text, all integers or all booleans; fractional numbers, dates and times as text.
    """

    values: Values
    counts: tuple[int, ...]

    def vocabulary(self, *, max_size: int | None = None, min_count: int = 1) -> tuple[str | int, ...]:
        """Return the values for a Vocabulary, booleans as 'true' and 'false': at most the `max_size` most frequent."""
        frequent = bisect.bisect_right(self.counts, -min_count, key=operator.neg)
        values = self.values[: frequent if max_size is None else min(frequent, max_size)]
        return tuple(map(_word, values)) if values and isinstance(values[0], bool) else values

    @property
    def classes(self) -> Values:
        """Values in their natural order, text by its bytes."""
        # UTF-8 keeps the order of code points, so Python's order of text is the order of its bytes.
        return tuple(sorted(self.values))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnStatistics:
    """Statistics of one column of the training rows; statistics that were not wanted have their defaults."""

    rows: int = 0
    nulls: int = 0
    min: float = 0.0
    max: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    integers: bool = True  # no number has a fraction
    histogram: Histogram | None = None
    bins: Bins | None = None  # by deciles of a sample
    numbers: int = 0  # values that have moments
    counts: ValueCounts | None = None  # None also if there are too many to count
    distinct: int = 0  # without NULL; a lower bound if there are too many to count
    longest: int = 0  # characters of the longest text
    delimiter: str = ""  # of texts that are lists, else empty
    single_value: bool = False  # no two values other than NULL differ; known with MOMENTS or COUNTS
    unique: bool = False  # no value occurs twice, judged by a sample of the values
    span: int = 0  # of unique integers: whole numbers from the least to the largest
    years: tuple[float, float] = (0.0, 0.0)  # mean and deviation of the calendar year
    parts: Mapping[str, int] = field(default_factory=dict)  # part of a date or time -> number of its values
    disorder: float = 0.0  # of whole numbers: share of the label's variance between them that is in no order
    sample: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    vector: Vector = ((), ())  # mean and deviation of each element, if cells hold vectors
    error: SemanticError | None = None  # of the first cell of several values that cannot be read
    lists: Mapping[Cells, ColumnStatistics] = field(default_factory=dict)  # of the items in such cells
    state: str = ""  # of a function of a user's own, fitted to the rows
    # number of bins -> their boundaries, which the candidates of a search have in common
    _boundaries: dict[int, tuple[float, ...]] = field(default_factory=dict, repr=False)

    @property
    def constant(self) -> bool:
        """True if all rows are the same, where NULL is a value, too."""
        return self.single_value and self.nulls in (0, self.rows)

    @property
    def is_value_or_null(self) -> bool:
        """True if some rows hold one value and the others NULL, as a flag does behind a LEFT JOIN."""
        return self.single_value and 0 < self.nulls < self.rows

    def quantiles(self, probabilities: Sequence[float]) -> tuple[float, ...]:
        """Return the quantiles of the sample, in the order of `probabilities`; empty without values."""
        if not len(self.sample):
            return ()
        return tuple(np.quantile(self.sample, probabilities).tolist())

    def boundaries(self, bins: int) -> tuple[float, ...]:
        """Return the boundaries of so many bins of the sample; see `binning.boundaries`."""
        if bins not in self._boundaries:
            self._boundaries[bins] = boundaries(self.sample, bins)
        return self._boundaries[bins]


def collect(
    batches: Iterable[pa.RecordBatch],
    wants: Mapping[str, Want],
    *,
    seed: int,
    lists: Iterable[Cells] = (),
    most_distinct: int = MOST_DISTINCT,
) -> dict[str, ColumnStatistics]:
    """Collect the wanted statistics of each column in `wants`; the batches may have other columns.

    seed: of the sample for quantiles. lists: the readings of columns with several values in a cell. Raises
    SemanticError for a column of an unsupported type.
    """
    columns = {name: _CollectedColumn(name, want, most_distinct) for name, want in wants.items()}
    for cells in lists:
        columns[cells.column].lists.append(_Cells(cells, most_distinct))
    quantiles = [column for column in columns.values() if Want.QUANTILES in column.want]
    binned = [column for column in columns.values() if _BINNED & column.want == Want.MOMENTS]
    others = [column for column in columns.values() if not _BINNED & column.want]
    samples = [
        (RowSample(min(most, SAMPLE_VALUES // len(members)), seed), members)
        for most, members in ((SAMPLE_ROWS, quantiles), (BINNED_ROWS, binned))
        if members
    ]
    for batch in batches:
        for column in others:
            column.add(batch.column(column.name), slice(None))
        for sample, members in samples:
            chosen = sample.rows(batch.num_rows)
            for column in members:
                column.add(batch.column(column.name), chosen)
            if (stays := sample.thin()) is not None:
                for column in members:
                    column.thin(stays)
    return {name: column.ends() for name, column in columns.items()}


def distinct_values(
    batches: Iterable[pa.RecordBatch], column: str, *, most: int = MOST_DISTINCT
) -> Values | None:
    """Return the values of a column in their natural order without NULL, or None if there are more than `most`."""
    column_statistics = collect(batches, {column: Want.COUNTS}, seed=0, most_distinct=most)[column]
    return column_statistics.counts.classes if column_statistics.counts is not None else None


class _CollectedColumn:
    """Collector of one column's statistics."""

    def __init__(self, name: str, want: Want, most_distinct: int) -> None:
        self.name = name
        self.want = want
        self.rows = 0
        self.nulls = 0
        self.moments = Moments()
        self.histogram = HistogramBuilder()
        self.sample: list[Floats] = []
        self.counts = ValueCounter(most_distinct)
        self.shape = TextShape()
        self.calendar = Calendar()
        self.unique = Uniqueness(UNIQUE_SAMPLE)
        self.lists: list[_Cells] = []

    def add(self, array: pa.Array, chosen: slice | Ints) -> None:
        array = plain_array(array)
        for list_statistics in self.lists:
            list_statistics.add(array)
        textual = is_text(array.type)
        self.rows += len(array)
        self.nulls += array.null_count
        if not textual and (self.want & (Want.MOMENTS | Want.QUANTILES) or types.is_floating(array.type)):
            self._add_numbers(array, chosen)
        if Want.CALENDAR in self.want:
            self.calendar.add(array, self.name)
        if Want.UNIQUE in self.want and (textual or types.is_integer(array.type)):
            self.unique.add(array.drop_null() if array.null_count else array)
        counting = Want.COUNTS in self.want and not self.counts.stopped
        if counting or (textual and Want.TEXT in self.want):
            self._add_values(array)

    def _add_numbers(self, array: pa.Array, chosen: slice | Ints) -> None:
        values = numbers(array, self.name)
        finite = np.isfinite(values)
        usable = values if finite.all() else values[finite]
        self.nulls += len(values) - len(usable) - array.null_count
        if Want.MOMENTS in self.want:
            self.moments.add(usable, integers=types.is_integer(array.type) or types.is_boolean(array.type))
            self.histogram.add(usable)
        if _BINNED & self.want:
            self.sample.append(values[chosen])

    def _add_values(self, array: pa.Array) -> None:
        if types.is_floating(array.type):
            array = array.filter(pc.is_finite(array))
        array = array.drop_null()
        if not len(array):
            return
        if not is_text(array.type):
            texts(array[:1], self.name)  # raises if the type has no text form, and so no categories
        counted = array.value_counts()
        if Want.COUNTS in self.want:
            self.counts.add(counted)
        if Want.TEXT in self.want and (types.is_string(array.type) or types.is_large_string(array.type)):
            self.shape.add(
                counted.field("values").cast(pa.large_string()), counted.field("counts").to_numpy()
            )

    def thin(self, stays: Bools) -> None:
        """Keep only the sampled rows in the mask; a text column has none."""
        if self.sample:
            self.sample = [np.concatenate(self.sample)[stays]]

    def ends(self) -> ColumnStatistics:
        least, most, mean, std = self.moments.ends()
        counted = self.counts.ends()
        counts = self._order_counts(*counted) if counted else None
        if Want.COUNTS in self.want and not counted and not self.counts.stopped:
            counts = ValueCounts((), ())
        sample = np.concatenate(self.sample) if self.sample else np.empty(0)
        sample = sample[np.isfinite(sample)]
        return ColumnStatistics(
            rows=self.rows,
            nulls=self.nulls,
            min=least,
            max=most,
            mean=mean,
            std=std,
            integers=self.moments.integers,
            numbers=self.moments.count,
            histogram=self.histogram.end(whole=self.moments.integers),
            counts=counts,
            distinct=self.counts.distinct,
            longest=self.shape.longest,
            delimiter=self.shape.delimiter,
            single_value=bool(self.want & (Want.MOMENTS | Want.COUNTS))
            and least == most
            and self.counts.distinct <= 1,
            unique=self.unique.count > 0 and not self.unique.repeats,
            span=self.unique.span,
            years=self.calendar.years(),
            parts={part: len(counted) for part, counted in self.calendar.counts.items()},
            bins=deciles(sample),
            sample=sample if Want.QUANTILES in self.want else np.empty(0),
            lists={list_statistics.cells: list_statistics.ends() for list_statistics in self.lists},
        )

    def _order_counts(self, values: pa.Array, counts: Ints) -> ValueCounts:
        try:
            words = _words(values)
        except pa.ArrowInvalid:
            raise SemanticError(f"column {self.name} holds bytes that are not UTF-8 text") from None
        table = pa.table({"count": counts, "value": _sortable(words)})
        order = pc.sort_indices(table, sort_keys=[("count", "descending"), ("value", "ascending")])
        return ValueCounts(tuple(words.take(order).to_pylist()), tuple(counts[order.to_numpy()].tolist()))


class _Cells:
    """Collector of the statistics of the items in one column's cells, until one cannot be read."""

    def __init__(self, cells: Cells, most_distinct: int) -> None:
        self.cells = cells
        self._items = _CollectedColumn(cells.column, _OF_ITEMS[cells.items], most_distinct)
        self._vectors = VectorMoments()
        self._error: SemanticError | None = None

    def add(self, array: pa.Array) -> None:
        if self._error:
            return
        cells = self.cells
        try:
            lists = Lists(array, cells.column, cells.delimiter, cells.separator)
            if cells.items == "numbers":
                self._vectors.add(lists.vectors(cells.size or self._vectors.size))
            else:
                items = pa.array(lists.numbers()) if cells.items == "ids" else lists.items
                self._items.add(items, slice(None))
        except SemanticError as error:
            self._error = error

    def ends(self) -> ColumnStatistics:
        return replace(self._items.ends(), vector=self._vectors.ends(), error=self._error)


_BINNED = Want.MOMENTS | Want.QUANTILES
_OF_ITEMS: Mapping[Items, Want] = {"numbers": Want.NONE, "ids": Want.MOMENTS, "words": Want.COUNTS}


# Counted values --------------------------------------------------------------------------------------------


def _words(values: pa.Array) -> pa.Array:
    """Return booleans, integers and text unchanged; floats and decimals as integers if all are, else as text."""
    if types.is_boolean(values.type) or types.is_integer(values.type):
        return values
    if types.is_floating(values.type) or types.is_decimal(values.type):
        whole, is_whole = integers(values, "")
        if is_whole.all():
            return pa.array(whole)
    return texts(values, "").cast(pa.large_string())


def _sortable(values: pa.Array) -> pa.Array:
    return values.cast(pa.uint8()) if types.is_boolean(values.type) else values


def _word(value: str | int) -> str | int:
    return str(value).lower() if isinstance(value, bool) else value
