"""Accumulators of column statistics: each takes the values of one column batch by batch.

Each accumulator takes the values of a batch (`add`) and keeps a small state; none loops over rows. Callers remove
NULLs and numbers that are not finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.features import calendar
from edl.features.arrays import Bools, Floats, Ints, is_text, numbers
from edl.features.hashing import Hashes, hash_texts, mix

DELIMITERS = (",", ";", "|", " ")
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_HEAD = 1000  # values of a batch checked first: most columns repeat a value among them


@dataclass(slots=True)
class Moments:
    """Count, extremes, mean and squared deviations, merged as Chan, Golub and LeVeque do: stable far from zero."""

    count: int = 0
    min: float = math.inf
    max: float = -math.inf
    mean: float = 0.0
    deviations: float = 0.0  # sum of squared differences from the mean
    integers: bool = True

    def add(self, values: Floats, *, integers: bool) -> None:
        """Add the values of a batch.

        integers: known from the type; otherwise the values are checked, until one has a fraction.
        """
        if not len(values):
            return
        with np.errstate(over="ignore", invalid="ignore"):  # near the end of float64's range; see `ends`
            mean = float(values.mean())
            differences = values - mean
            drift = float(differences.sum())
            deviations = float(np.square(differences).sum()) - drift * drift / len(values)
            self._merge(len(values), mean + drift / len(values), max(deviations, 0.0))
        self.min = min(self.min, float(values.min()))
        self.max = max(self.max, float(values.max()))
        self.integers = self.integers and (integers or bool((values == np.floor(values)).all()))

    def _merge(self, count: int, mean: float, deviations: float) -> None:
        total = self.count + count
        gap = mean - self.mean
        self.deviations += deviations + gap * gap * self.count * (count / total)
        self.mean += gap * (count / total)
        self.count = total

    def ends(self) -> tuple[float, float, float, float]:
        """Return min, max, mean and population deviation; all 0 without values.

        Mean and deviation are rounded to the ninth significant digit of the deviation: the last digits of a sum depend
        on the batch size, and results that use them (a program, its digest) must not.
        """
        if not self.count:
            return 0.0, 0.0, 0.0, 0.0
        if self.min == self.max:
            return self.min, self.max, self.min, 0.0
        largest = np.finfo(np.float64).max
        std = float(np.nan_to_num(math.sqrt(self.deviations / self.count), nan=largest, posinf=largest))
        mean = min(max(float(np.nan_to_num(self.mean)), self.min), self.max)
        return self.min, self.max, round_to_scale(mean, std), round_to_scale(std, std)


def round_to_scale(value: float, scale: float, digits: int = 9) -> float:
    """Round `value` to the last of `digits` significant digits of `scale`."""
    if not scale:
        return value
    nearest = round(value, digits - 1 - math.floor(math.log10(scale)))
    return nearest if math.isfinite(nearest) else value


@dataclass(slots=True)
class VectorMoments:
    """Count, extremes, mean and squared deviations of each element of a vector; see `Moments`."""

    _count: Floats = field(default_factory=lambda: np.zeros(0))
    _mean: Floats = field(default_factory=lambda: np.zeros(0))
    _deviations: Floats = field(default_factory=lambda: np.zeros(0))
    _least: Floats = field(default_factory=lambda: np.zeros(0))
    _most: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def size(self) -> int:
        """Length of the vectors; 0 before the first one."""
        return len(self._mean)

    def add(self, values: Floats) -> None:
        """Add vectors, an array of shape (n, size)."""
        if not values.size:
            return
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
        """Return mean and population deviation of each element, rounded as in `Moments`; 0 where there is no value."""
        same, some = self._least >= self._most, self._count > 0
        largest = np.finfo(np.float64).max
        std = np.nan_to_num(
            np.sqrt(self._deviations / np.maximum(self._count, 1)), nan=largest, posinf=largest
        )
        mean = np.where(some & same, self._least, np.nan_to_num(self._mean))
        mean, std = np.where(some, mean, 0.0), np.where(same, 0.0, std)
        pairs = list(zip(mean.tolist(), std.tolist(), strict=True))
        return tuple(round_to_scale(m, s) for m, s in pairs), tuple(round_to_scale(s, s) for _, s in pairs)


@dataclass(slots=True)
class Calendar:
    """Counts of the years, months and other parts of dates and times."""

    counts: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(self, array: pa.Array, column: str) -> None:
        array = array.drop_null()
        for part in calendar.parts_of(array.type):
            values = (
                calendar.years(array, column) if part == "year" else calendar.parts(array, part, column)[0]
            )
            counted = self.counts.setdefault(part, {})
            for value, count in zip(*np.unique(values, return_counts=True), strict=True):
                counted[int(value)] = counted.get(int(value), 0) + int(count)

    def years(self) -> tuple[float, float]:
        """Return mean and population deviation of the year; 0 without values."""
        counted = self.counts.get("year", {})
        if not counted:
            return 0.0, 0.0
        values, often = np.array(list(counted)), list(counted.values())
        mean = float(np.average(values, weights=often))
        std = math.sqrt(np.average(np.square(values - mean), weights=often))
        return round_to_scale(mean, std), round_to_scale(std, std)


class RowSample:
    """Sample of rows for quantiles: all rows at first, then half of them each time they exceed `most`.

    Membership of a row in the final sample depends only on the seed, the row's number and the number of rows.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most = most
        self._start: Hashes = mix(np.array([seed % 2**64], dtype=np.uint64))
        self._halvings = 0
        self._row = 0
        self._drawn: list[Hashes] = []  # hashes of the rows in the sample
        self._size = 0

    def rows(self, count: int) -> slice | Ints:
        """Return an index of the sampled rows among the next `count` rows."""
        first, self._row = self._row, self._row + count
        drawn = mix(np.arange(first, first + count, dtype=np.uint64) + self._start)
        chosen = np.flatnonzero(self._stays(drawn)) if self._halvings else slice(None)
        self._drawn.append(drawn[chosen])
        self._size += len(self._drawn[-1])
        return chosen

    def thin(self) -> Bools | None:
        """Return a mask of the rows sampled so far that stay, or None while they are not too many."""
        if self._size <= self._most:
            return None
        drawn = np.concatenate(self._drawn)
        stays = self._stays(drawn)
        while np.count_nonzero(stays) > self._most:
            self._halvings += 1
            stays = self._stays(drawn)
        self._drawn = [drawn[stays]]
        self._size = len(self._drawn[0])
        return stays

    def _stays(self, drawn: Hashes) -> Bools:
        if not self._halvings:
            return np.ones(len(drawn), dtype=np.bool_)
        stays: Bools = drawn >> np.uint64(64 - self._halvings) == 0
        return stays


def hashes(array: pa.Array) -> Hashes:
    """Return a 64-bit hash of each value, shape (n,); arbitrary where NULL.

    Integers and text are hashed exactly, other values as float64.
    """
    if is_text(array.type):
        wide = pa.large_binary() if types.is_binary(array.type) else pa.large_string()
        return hash_texts(array.cast(wide))
    if types.is_integer(array.type):
        return mix(array.to_numpy().astype(np.int64, copy=False).view(np.uint64))
    return mix((numbers(array, "") + 0.0).view(np.uint64))  # -0.0 + 0.0 is 0.0


@dataclass(slots=True)
class Uniqueness:
    """Test for repeated values, on a sample of the distinct values: those with the smallest hashes.

    Membership in the sample depends only on the value's hash, so a repetition of a sampled value is always seen. With
    up to `most` values the answer is exact. After the first repetition a column costs nothing more.
    """

    most: int
    repeats: bool = False
    least: int = 0  # of integer values
    largest: int = 0
    count: int = 0
    _hashes: Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    _halvings: int = 0

    def add(self, values: pa.Array) -> None:
        """Add integers or text, without NULLs."""
        if self.repeats or not len(values):
            return
        head = values[:_HEAD]
        if pc.count_distinct(head).as_py() < len(head):
            self._stop()
            return
        if types.is_integer(values.type):
            ends = pc.min_max(values)
            least, largest = ends["min"].as_py(), ends["max"].as_py()
            self.least = min(self.least, least) if self.count else least
            self.largest = max(self.largest, largest) if self.count else largest
        self.count += len(values)
        merged = np.concatenate((self._hashes, self._sample_hashes(hashes(values))))
        merged.sort()
        if (merged[1:] == merged[:-1]).any():
            self._stop()
            return
        while len(merged) > self.most:
            self._halvings += 1
            merged = self._sample_hashes(merged)
        self._hashes = merged

    def _sample_hashes(self, values: Hashes) -> Hashes:
        if not self._halvings:
            return values
        sampled: Hashes = values[values >> np.uint64(64 - self._halvings) == 0]
        return sampled

    def _stop(self) -> None:
        self.repeats, self._hashes = True, self._hashes[:0]

    @property
    def span(self) -> int:
        """Range of the integers, `largest - least + 1`; 0 for text."""
        return self.largest - self.least + 1 if self.largest or self.least else 0


@dataclass(slots=True)
class ValueCounter:
    """Counts of distinct values, up to `most` values or `most_bytes` of text."""

    most: int
    most_bytes: int = 1 << 28
    stopped: bool = False
    distinct: int = 0  # a lower bound once stopped
    _values: list[pa.Array] = field(default_factory=list)
    _numbers: list[Ints] = field(default_factory=list)
    _pending: int = 0

    def add(self, counted: pa.StructArray) -> None:
        """Add the result of `value_counts` on a batch."""
        if self.stopped:
            return
        values = counted.field("values")
        # Distinct texts of many batches may exceed the 2 GiB that the offsets of a plain string array can address.
        self._values.append(values.cast(pa.large_string()) if pa.types.is_string(values.type) else values)
        self._numbers.append(counted.field("counts").to_numpy())
        self._pending += len(counted)
        if self._pending > self.most or sum(part.nbytes for part in self._values) > self.most_bytes:
            self._compact()

    def ends(self) -> tuple[pa.Array, Ints] | None:
        """Return distinct values and their counts, or None if there were too many or no batch."""
        self._compact()
        return (self._values[0], self._numbers[0]) if self._values else None

    def _compact(self) -> None:
        if len(self._values) > 1:
            merged = pa.concat_arrays(self._values).dictionary_encode()
            counts = np.bincount(merged.indices.to_numpy(), np.concatenate(self._numbers))
            self._values, self._numbers = [merged.dictionary], [counts.astype(np.int64)]
        if self._values:
            self._pending = len(self._values[0])
            self.distinct = min(self._pending, self.most)
            if self._pending > self.most or self._values[0].nbytes > self.most_bytes:
                self.stopped, self._values, self._numbers = True, [], []


@dataclass(slots=True)
class TextShape:
    """Greatest length of a column's texts, and the delimiter with which all of them are lists."""

    longest: int = 0  # characters
    _rows: int = 0
    _lists: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DELIMITERS, 0))

    def add(self, texts: pa.Array, counts: Ints) -> None:
        """Add the distinct texts of a batch and the number of rows of each."""
        if not len(texts):
            return
        self.longest = max(self.longest, pc.max(pc.utf8_length(texts)).as_py())
        if self._lists:
            held = pc.match_substring_regex(texts, r"\S")  # an empty text is an empty list
            texts, counts = texts.filter(held), counts[held.to_numpy(zero_copy_only=False)]
            self._rows += int(counts.sum())
            self._lists = dict(self._still_lists(texts, counts))

    def _still_lists(self, texts: pa.Array, counts: Ints) -> Iterator[tuple[str, int]]:
        for delimiter, count in self._lists.items():
            if _all_match(texts, _list_pattern(delimiter)):
                several = pc.match_substring(texts, delimiter).to_numpy(zero_copy_only=False)
                yield delimiter, count + int(counts[several].sum())

    @property
    def delimiter(self) -> str:
        """Delimiter if every text is a list and at least half of the rows have several items; else empty."""
        often = [
            (count, delimiter)
            for delimiter, count in self._lists.items()
            if count and 2 * count >= self._rows
        ]
        return max(often)[1] if often else ""


def _list_pattern(delimiter: str) -> str:
    """Return a pattern of lists with no blanks in their items, so that 'Smith, John' does not match.
    Blank-separated items must be numbers, or items with weights such as 3:0.5; otherwise all prose would be lists.
    """
    if delimiter == " ":
        item = rf"(?:[^\s:]+:)?{_NUMBER}"
        return rf"^{item}( {item})*$"
    return rf"^[^\s\{delimiter}]+(\{delimiter}[^\s\{delimiter}]+)*$"


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())
