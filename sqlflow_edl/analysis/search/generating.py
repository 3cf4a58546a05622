"""Generated features of a search: pairs of columns that tell more about the label together than each by itself.

The label less the effects of each column alone, which are found by backfitting, is what only columns together explain
(Lou et al., 2013, "Accurate intelligible models with pairwise interactions"). Differences, products and ratios of
numbers, the time between two times, pairs of categories, and numbers less their mean by category, are kept if they
explain more of that rest than chance would. A tree needs many splits for what one of them tells.

Texts of several words are taken as lists of their most frequent words, if a ridge regression on these explains some of
the rest of other rows. Others, such as codes and names, are taken as their runs of three characters, by the same test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.arrays import Array
from edl.features.arrays import Floats, Ints, is_text, numbers, plain_array
from edl.features.character_ngrams import ngrams
from sqlflow_edl.analysis.search.screening import label_targets

ROWS, LEAST_ROWS = 6_000, 500  # of the training that are looked at, and below which nothing is generated
WIDE = 100  # columns of a table above which nothing is generated: the looks at them would take seconds
NUMBERS, TIMES, CATEGORIES = 12, 6, 8  # columns whose pairs are tried: those that tell most
MOST, MOST_OF_COLUMN = 8, 3  # generated features in all, and of one column
LEAST_SHARE = 0.01  # of the rest that a feature explains
DEVIATIONS = 5.0  # by which that is above its mean by chance
BINS, ROWS_OF_CELL = 16, 50
ROUNDS, ROUNDS_OF_PAIR = 3, 6  # of backfitting
PRIOR = 5.0  # rows that draw the mean of a group to 0
CLASSES = 4  # most frequent ones, which are told apart
BUCKETS_OF_CELL = 8  # of a cross of categories
WORDS, CELLS = 200, 40_000_000  # words of a text that are told apart at most, and times the rows
LEAST_WORDS = 2.0  # in a text on average
RUN, BUCKETS = 3, 256  # characters of the runs in a text, and the most buckets of their hashes
MOST_CHARACTERS = 64  # of texts on average, of which the runs are looked at
TEXTS = 100  # different texts of a column from which on they are looked at
MOST_DISTINCT = 0.5  # share of texts that are different, below which a text is a category, too
RIDGE = 100.0  # penalty of the regression on parts of texts
LEAST_OF_TEXTS, LEAST_OF_LABEL = (
    0.005,
    0.002,
)  # share of the rest, and of the label's variance, that they explain
DEVIATIONS_OF_TEXTS = 1.5  # by which that is above 0; parts that say nothing make other rows worse
STRONG = 0.05  # share of the label's variance: candidates with such a feature are tried early
CROSS, GROUP_DIFFERENCE = "CROSS", "GROUP_DIFFERENCE"
VOCABULARIZE, NGRAMS = "VOCABULARIZE", "NGRAMS"


class GeneratedFeature(NamedTuple):
    """Operator `-`, `*` or `/` of two numbers, `-` of two times, CROSS of two categories, GROUP_DIFFERENCE of a number
    by a category, or VOCABULARIZE of the words of a text, or NGRAMS of its characters; `second` is then the text if it
    is a category, too.

    size: buckets of a cross or of runs of characters, or the number of words.
    """

    operator: str
    first: str
    second: str = ""
    size: int = 0

    @property
    def is_of_text(self) -> bool:
        return self.operator in (VOCABULARIZE, NGRAMS)

    @property
    def words(self) -> str:
        """Parts of a text, for people."""
        if self.operator == VOCABULARIZE:
            return f"the {self.size} most frequent words of {self.first}"
        return f"the runs of {RUN} characters in {self.first}"


class Generated(NamedTuple):
    """Generated features: of pairs of columns, the one that tells most first, and of the parts of texts.

    is_strong: the first pair explains much of the label.
    """

    pairs: tuple[GeneratedFeature, ...] = ()
    of_texts: tuple[GeneratedFeature, ...] = ()
    is_strong: bool = False


class _Column(NamedTuple):
    """Column as groups of rows, codes (n,) below `size`, and its numbers, or times in seconds, if it has some.

    kind: of what may be paired with what.
    """

    name: str
    codes: Ints
    size: int
    values: Floats | None
    kind: str = "category"


def generate_features(rows: pa.Table, label: str, names: Collection[str], count: int = 0) -> Generated:
    """Return the features of the columns `names`.

    rows: some of the training, with the label; those without one are left out. count: of all training rows.
    """
    usable = rows.filter(rows[label].is_valid())
    if usable.num_rows < LEAST_ROWS:
        return Generated()
    targets = label_targets(usable, label)[:, :CLASSES]
    columns = [column for name in names if (column := _read_column(usable, name)) is not None]
    lefts = {column.name: np.square(_backfit([column], targets, 1)).sum() for column in columns}
    columns.sort(key=lambda column: lefts[column.name])
    rest = _backfit(columns, targets, ROUNDS)
    if not np.square(rest).sum():
        return Generated()
    ranked = sorted(_pairs(columns, rest), key=lambda pair: -pair[0])
    of_rest = float(np.square(rest).sum() / np.square(targets).sum())
    is_strong = bool(ranked) and ranked[0][0] * of_rest >= STRONG
    least = max(LEAST_OF_TEXTS, LEAST_OF_LABEL / of_rest)
    of_texts = tuple(_features_of_texts(usable, names, rest, least, CELLS // max(1, count)))
    return Generated(tuple(_choose(ranked)), of_texts, is_strong)


def _choose(ranked: Iterable[tuple[float, GeneratedFeature]]) -> list[GeneratedFeature]:
    """Return the first of the features of pairs, at most MOST, of different pairs and not too many of one column."""
    chosen: list[GeneratedFeature] = []
    uses: dict[str, int] = {}
    for _, feature in ranked:
        pair = {feature.first, feature.second}
        is_new = all(pair != {other.first, other.second} for other in chosen)
        if is_new and all(uses.get(name, 0) < MOST_OF_COLUMN for name in pair):
            chosen.append(feature)
            uses |= {name: uses.get(name, 0) + 1 for name in pair}
        if len(chosen) == MOST:
            break
    return chosen


def _read_column(rows: pa.Table, name: str) -> _Column | None:
    """Return a column of numbers, of times or of a category of few values; None for another one."""
    array = plain_array(rows[name].combine_chunks())
    if types.is_timestamp(array.type) or types.is_date(array.type):
        values = numbers(array, name)
        codes, size = _bin(values)
        in_zone = types.is_timestamp(array.type) and array.type.tz is not None
        return _Column(name, codes, size, values, "time in a zone" if in_zone else "time")
    if types.is_integer(array.type) or types.is_floating(array.type) or types.is_decimal(array.type):
        values = numbers(array, name)
        if types.is_integer(array.type) and len(np.unique(values)) == len(values):
            return None  # as ids are
        codes, size = _bin(values)
        has_several = size > 3  # more than two values and NaN
        return _Column(name, codes, size, values, "number") if has_several else None
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
        for number, column in enumerate(columns):
            codes, size = column.codes, column.size
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
    of_numbers = [column for column in columns if column.kind == "number"][:NUMBERS]
    times = [column for column in columns if column.kind.startswith("time")][:TIMES]
    categories = [column for column in columns if column.kind == "category"][:CATEGORIES]
    pairs = [
        *(pair for pair in combinations(times, 2) if pair[0].kind == pair[1].kind),
        *combinations(of_numbers, 2),
        *product(of_numbers, categories),
        *combinations(categories, 2),
    ]
    for first, second in pairs:
        for feature, codes, size in _features_of(first, second):
            if gain := _gain((first, second), codes, size, rest):
                yield gain, feature


def _features_of(first: _Column, second: _Column) -> Iterator[tuple[GeneratedFeature, Ints, int]]:
    """Yield the features of a pair, each with the groups of rows that it makes and their number."""
    a, b = first.values, second.values
    if a is not None and b is not None:
        with np.errstate(all="ignore"):
            yield GeneratedFeature("-", first.name, second.name), *_bin(a - b)
            if first.kind == "number":
                yield GeneratedFeature("*", first.name, second.name), *_bin(a * b)
                yield GeneratedFeature("/", first.name, second.name), *_bin(a / b)
                yield GeneratedFeature("/", second.name, first.name), *_bin(b / a)
    elif a is not None:
        is_number = np.isfinite(a)
        counts = np.bincount(second.codes[is_number], minlength=second.size)
        sums = np.bincount(second.codes[is_number], a[is_number], second.size)
        differences = a - (sums / np.maximum(counts, 1))[second.codes]
        yield GeneratedFeature(GROUP_DIFFERENCE, first.name, second.name), *_bin(differences)
    else:
        cells, codes = np.unique(first.codes * second.size + second.codes, return_inverse=True)
        if len(cells) <= len(codes) // ROWS_OF_CELL:
            buckets = 1 << (BUCKETS_OF_CELL * len(cells) - 1).bit_length()
            yield GeneratedFeature(CROSS, first.name, second.name, buckets), codes, len(cells)


def _features_of_texts(
    rows: pa.Table, names: Collection[str], rest: Floats, least: float, most: int
) -> Iterator[GeneratedFeature]:
    """Yield the words, or the runs of characters, of the columns of texts that explain a share of the rest by them.

    least: share of the rest. most: values of each row that there is room for.
    """
    for name in names:
        array = plain_array(rows[name].combine_chunks())
        if not most or not is_text(array.type) or (distinct := pc.count_distinct(array).as_py()) < TEXTS:
            continue
        is_category = distinct < MOST_DISTINCT * (len(array) - array.null_count)
        for operator, read, size in ((VOCABULARIZE, _read_words, WORDS), (NGRAMS, _read_runs, BUCKETS)):
            parts = read(array)
            if parts is not None and _gain_of_parts(parts, rest) > least:
                yield GeneratedFeature(operator, name, name if is_category else "", min(size, most))
                break


def _read_words(array: pa.Array) -> Floats | None:
    """Return 1 for each text and frequent word that is in it, (n, words); None for texts of one word."""
    texts = array.cast(pa.large_string()).fill_null("")
    lists = pc.split_pattern(texts, " ")
    words, of_texts = pc.list_flatten(lists), pc.list_parent_indices(lists)
    if len(words) < LEAST_WORDS * len(texts):
        return None
    encoded = words.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    often = np.argsort(-np.bincount(codes), kind="stable")[:WORDS]
    places = np.full(len(encoded.dictionary), -1)
    places[often] = np.arange(len(often))
    is_often = places[codes] >= 0
    table = np.zeros((len(texts), len(often)))
    table[np.asarray(of_texts)[is_often], places[codes[is_often]]] = 1.0
    return table


def _read_runs(array: pa.Array) -> Floats | None:
    """Return the number of runs of characters in each text by their bucket, (n, buckets); None for long texts."""
    texts = array.cast(pa.large_string())
    if (pc.mean(pc.utf8_length(texts)).as_py() or MOST_CHARACTERS) >= MOST_CHARACTERS:
        return None
    hashes, offsets = ngrams(texts, RUN)
    of_texts = np.repeat(np.arange(len(texts)), np.diff(offsets))
    cells = of_texts * BUCKETS + (hashes % np.uint64(BUCKETS)).astype(np.int64)
    return np.bincount(cells, minlength=len(texts) * BUCKETS).reshape(-1, BUCKETS).astype(np.float64)


def _gain_of_parts(parts: Floats, rest: Floats) -> float:
    """Return the share of the rest of a third of the rows that a ridge regression of the other rows explains.

    It is 0 where a regression that knows nothing may explain as much by chance.
    """
    is_unseen = np.random.default_rng(0).permutation(len(parts)) % 3 == 0
    mean, centre = parts[~is_unseen].mean(axis=0), rest[~is_unseen].mean(axis=0)
    seen, unseen = parts[~is_unseen] - mean, parts[is_unseen] - mean
    squares = seen.T @ seen + RIDGE * np.eye(parts.shape[1])
    weights = np.linalg.solve(squares, seen.T @ (rest[~is_unseen] - centre))
    truth = rest[is_unseen] - centre
    by_row = (np.square(truth) - np.square(truth - unseen @ weights)).sum(axis=1)
    by_chance = DEVIATIONS_OF_TEXTS * by_row.std() / np.sqrt(len(by_row))
    total = float(np.square(truth).sum())
    return float(by_row.sum()) / total if total and by_row.mean() > by_chance else 0.0
