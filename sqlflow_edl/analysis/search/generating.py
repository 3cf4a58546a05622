"""Generated features of a search: pairs of columns that tell more about the label together than each by itself.

The label less the effects of each column alone, which are found by backfitting, is what only columns together explain
(Lou et al., 2013, "Accurate intelligible models with pairwise interactions"). Differences, products and ratios of
numbers, pairs of categories, and numbers less their mean by category, are kept if they explain more of that rest than
chance would. A tree needs many splits for what one of them tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from edl.arrays import Array
from edl.features.arrays import Floats, Ints, is_text, numbers, plain_array
from sqlflow_edl.analysis.search.screening import label_targets

ROWS, LEAST_ROWS = 6_000, 500  # of the training that are looked at, and below which nothing is generated
WIDE = 100  # columns of a table above which nothing is generated: the looks at them would take seconds
NUMBERS, CATEGORIES = 12, 8  # columns whose pairs are tried: those that tell most
MOST, MOST_OF_COLUMN = 8, 3  # generated features in all, and of one column
LEAST_SHARE = 0.01  # of the rest that a feature explains
DEVIATIONS = 5.0  # by which that is above its mean by chance
BINS, ROWS_OF_CELL = 16, 50
ROUNDS, ROUNDS_OF_PAIR = 3, 6  # of backfitting
PRIOR = 5.0  # rows that draw the mean of a group to 0
CLASSES = 4  # most frequent ones, which are told apart
BUCKETS_OF_CELL = 8  # of a cross of categories
CROSS, GROUP_DIFFERENCE = "CROSS", "GROUP_DIFFERENCE"


class GeneratedFeature(NamedTuple):
    """Operator `-`, `*` or `/` of two numbers, CROSS of two categories, or GROUP_DIFFERENCE of a number by a category.

    buckets: of a cross.
    """

    operator: str
    first: str
    second: str
    buckets: int = 0


class _Column(NamedTuple):
    """Column as groups of rows, codes (n,) below `size`, and its numbers, if it has some."""

    name: str
    codes: Ints
    size: int
    values: Floats | None


def generate_features(rows: pa.Table, label: str, names: Collection[str]) -> list[GeneratedFeature]:
    """Return the features of pairs of the columns `names`, the one that tells most first.

    rows: of the training, with the label, whose NULLs are left out.
    """
    usable = rows.filter(rows[label].is_valid())
    if usable.num_rows < LEAST_ROWS:
        return []
    targets = label_targets(usable, label)[:, :CLASSES]
    columns = [column for name in names if (column := _read_column(usable, name)) is not None]
    lefts = {column.name: np.square(_backfit([column], targets, 1)).sum() for column in columns}
    columns.sort(key=lambda column: lefts[column.name])
    rest = _backfit(columns, targets, ROUNDS)
    if not np.square(rest).sum():
        return []
    found = sorted(_pairs(columns, rest), key=lambda pair: -pair[0])
    chosen: list[GeneratedFeature] = []
    uses: dict[str, int] = {}
    for _, feature in found:
        pair = {feature.first, feature.second}
        is_new = all(pair != {other.first, other.second} for other in chosen)
        if is_new and all(uses.get(name, 0) < MOST_OF_COLUMN for name in pair):
            chosen.append(feature)
            uses |= {name: uses.get(name, 0) + 1 for name in pair}
        if len(chosen) == MOST:
            break
    return chosen


def _read_column(rows: pa.Table, name: str) -> _Column | None:
    """Return a column of numbers or of a category of few values; None for another one."""
    array = plain_array(rows[name].combine_chunks())
    if types.is_integer(array.type) or types.is_floating(array.type) or types.is_decimal(array.type):
        values = numbers(array, name)
        if types.is_integer(array.type) and len(np.unique(values)) == len(values):
            return None  # as ids are
        codes, size = _bin(values)
        return _Column(name, codes, size, values) if size > 3 else None  # more than two values and NaN
    if not is_text(array.type) and not types.is_boolean(array.type):
        return None
    encoded = array.dictionary_encode(null_encoding="encode")
    size = len(encoded.dictionary)
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return _Column(name, codes, size, None) if 1 < size <= rows.num_rows // ROWS_OF_CELL else None


def _bin(values: Array) -> tuple[Ints, int]:
    """Return the bin of each number, with about as many rows in each, and the number of bins; NaN has the last one."""
    is_finite = np.isfinite(values)
    ordered = np.sort(values[is_finite])
    edges = np.unique(ordered[np.arange(1, BINS) * len(ordered) // BINS]) if len(ordered) else ordered
    bins: Ints = np.where(is_finite, np.searchsorted(edges, values, "right"), len(edges) + 1)
    return bins, len(edges) + 2


def _backfit(columns: Sequence[_Column], targets: Floats, rounds: int) -> Floats:
    """Return the targets less the effects of each column alone, which are found one after another, in some rounds."""
    rest = targets.copy()
    effects = [np.zeros((column.size, targets.shape[1])) for column in columns]
    sizes = [np.bincount(column.codes, minlength=column.size) + PRIOR for column in columns]
    for _ in range(rounds):
        for number, (_, codes, size, _) in enumerate(columns):
            rest += effects[number][codes]
            for target in range(targets.shape[1]):
                sums = np.bincount(codes, rest[:, target], minlength=size)
                effects[number][:, target] = sums / sizes[number]
            rest -= effects[number][codes]
    return rest


def _gain(pair: tuple[_Column, _Column], codes: Ints, size: int, rest: Floats) -> float:
    """Return the share of the rest that a feature of the pair explains, while the effects of the pair give way to it.

    It is 0 where so many groups of rows may explain as much by chance.
    """
    left = _backfit([_Column("", codes, size, None), *pair], rest, ROUNDS_OF_PAIR)
    gain = 1 - float(np.square(left).sum()) / float(np.square(rest).sum())
    groups = np.count_nonzero(np.bincount(codes, minlength=size)) - 1
    by_chance = (groups + DEVIATIONS * np.sqrt(2 * groups)) / len(codes)
    return gain if gain > max(by_chance, LEAST_SHARE) else 0.0


def _pairs(columns: Collection[_Column], rest: Floats) -> Iterator[tuple[float, GeneratedFeature]]:
    """Yield the features that explain a share of the rest, with that share."""
    of_numbers = [column for column in columns if column.values is not None][:NUMBERS]
    categories = [column for column in columns if column.values is None][:CATEGORIES]
    for first, second in combinations(of_numbers, 2):
        a, b = first.values, second.values
        assert a is not None and b is not None  # noqa: S101 - columns of numbers have them
        with np.errstate(all="ignore"):
            operations = (("-", a - b, False), ("*", a * b, False), ("/", a / b, False), ("/", b / a, True))
        for operator, values, swapped in operations:
            if gain := _gain((first, second), *_bin(values), rest):
                names = (second.name, first.name) if swapped else (first.name, second.name)
                yield gain, GeneratedFeature(operator, *names)
    for number, category in product(of_numbers, categories):
        assert number.values is not None  # noqa: S101 - as above
        is_number = np.isfinite(number.values)
        counts = np.bincount(category.codes[is_number], minlength=category.size)
        sums = np.bincount(category.codes[is_number], number.values[is_number], category.size)
        differences = number.values - (sums / np.maximum(counts, 1))[category.codes]
        if gain := _gain((number, category), *_bin(differences), rest):
            yield gain, GeneratedFeature(GROUP_DIFFERENCE, number.name, category.name)
    for first, second in combinations(categories, 2):
        cells, codes = np.unique(first.codes * second.size + second.codes, return_inverse=True)
        if len(cells) > len(codes) // ROWS_OF_CELL:
            continue
        if gain := _gain((first, second), codes.astype(np.int64), len(cells), rest):
            buckets = 1 << (BUCKETS_OF_CELL * len(cells) - 1).bit_length()
            yield gain, GeneratedFeature(CROSS, first.name, second.name, buckets)
