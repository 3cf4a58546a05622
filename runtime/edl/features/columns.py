"""Constructors of feature columns for programs: `fc.standardize("age", mean=38.6, std=13.6)`.

Each function checks its arguments and returns the spec object of the same name. A SemanticError names the invalid
argument and column. `edl.features.checks` has the same checks for columns of other origin, such as a JobSpec.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from edl.errors import SemanticError, SpecError
from edl.features.checks import check
from edl.spec import (
    Bucket,
    Category,
    CategoryId,
    Codes,
    Concat,
    Cross,
    DatePart,
    Embedding,
    HashBucket,
    ItemCategory,
    ListOf,
    Log,
    LogCount,
    NGrams,
    Normalize,
    Numeric,
    OneHot,
    Part,
    Periodic,
    PiecewiseLinear,
    Raw,
    Sequence,
    Source,
    Standardize,
    TargetMean,
    Vector,
    Vocabulary,
    Year,
)
from edl.spec.features import Crossed, Plain, Single
from edl.spec.forecast import LAG


def numeric(column: str, mean: float = 0.0) -> Numeric:
    """Return the unchanged number; `mean` replaces NULL."""
    return check(Numeric(column, mean))


def standardize(column: str, mean: float, std: float, limit: float = 0.0) -> Standardize:
    """(x - mean) / std, smoothly clipped to `limit` unless that is 0."""
    return check(Standardize(column, mean, std, limit))


def normalize(column: str, min: float, max: float, mean: float) -> Normalize:  # noqa: A002 (the words of the field)
    """(x - min) / (max - min); `mean` replaces NULL."""
    return check(Normalize(column, min, max, mean))


def log(column: str, mean: float) -> Log:
    """Return the logarithm of 1 + x; `mean`, of x, replaces NULL and numbers without a logarithm."""
    return check(Log(column, mean))


def year(column: str, mean: float, std: float) -> Year:
    """(year - mean) / std of a date or timestamp."""
    return check(Year(column, mean, std))


def piecewise_linear(column: str, boundaries: Iterable[float], nulls: bool = False) -> PiecewiseLinear:
    """Return the piecewise-linear encoding of a number in the bins between the ascending `boundaries`."""
    return check(PiecewiseLinear(column, tuple(boundaries), nulls))


def periodic(column: str, mean: float, std: float, frequencies: int) -> Periodic:
    """Return the periodic embedding of (x - mean) / std, by as many learnt `frequencies`."""
    return check(Periodic(column, mean, std, frequencies))


def vector(column: str, mean: Iterable[float], std: Iterable[float] = (), delimiter: str = ",") -> Vector:
    """Return the numbers of a cell, as many as there are means; with `std`, (x - mean) / std of each."""
    return check(Vector(column, tuple(mean), tuple(std), delimiter))


def month(column: str) -> DatePart:
    """Return the month of a date, January first."""
    return _part(column, "month")


def day(column: str) -> DatePart:
    """Return the day of the month."""
    return _part(column, "day")


def weekday(column: str) -> DatePart:
    """Return the day of the week, Monday first."""
    return _part(column, "weekday")


def hour(column: str) -> DatePart:
    """Return the hour of a time or timestamp, in UTC."""
    return _part(column, "hour")


def minute(column: str) -> DatePart:
    """Return the minute of a time or timestamp, in UTC."""
    return _part(column, "minute")


def _part(column: str, part: Part) -> DatePart:
    return check(DatePart(column, part))


def bucket(column: str, boundaries: Iterable[float]) -> Bucket:
    """Return the interval of the ascending `boundaries` with the number; boundaries belong to the interval above."""
    return check(Bucket(column, tuple(boundaries)))


def category_id(column: str, size: int) -> CategoryId:
    """Return the integer itself, an id in [0, size)."""
    return check(CategoryId(column, size))


def hash_bucket(column: Source, size: int) -> HashBucket:
    """Return a stable hash of the value's text, modulo `size`."""
    return check(HashBucket(column, size))


def vocabulary(column: Source, values: Iterable[str | int]) -> Vocabulary:
    """Return the value's position in `values`."""
    return check(Vocabulary(column, tuple(values)))


def cross(columns: Iterable[str | Crossed], size: int) -> Cross:
    """Return a hash of several columns' values, or of categories' ids, together, modulo `size`."""
    if isinstance(columns, str):
        raise SemanticError(f"cross takes a list of columns, not {columns!r} alone")
    return check(Cross(tuple(columns), size))


def list_of(category: ItemCategory, delimiter: str = ",", weights: str = "") -> ListOf:
    """Return the ids of a list's items.

    In a text, `delimiter` separates items, and `weights` an item from its weight.
    """
    return check(ListOf(category, delimiter, weights))


def ngrams(column: Source, n: int, size: int) -> NGrams:
    """Return the ids of the runs of `n` characters in a text: stable hashes, modulo `size`."""
    return check(NGrams(column, n, size))


def concat(*categories: Single) -> Concat:
    """Combine the ids of several categories in one id space."""
    return check(Concat(categories))


def one_hot(category: Category) -> OneHot:
    """Return 1 at the row's id, or at each of a list, 0 elsewhere; the last place is for missing and unseen values."""
    return check(OneHot(category))


def embedding(
    category: Category, dim: int, combiner: str = "sum", initial: str = "uniform", table: int = 0
) -> Embedding:
    """Return a trained vector of `dim` values for each id. `initial` values: uniform, normal or zeros.

    Neighbouring embeddings with one number of a `table` share their vectors.
    """
    return check(Embedding(category, dim, combiner, initial, table))


def sequence(category: ListOf | NGrams, length: int) -> Sequence:
    """Return the ids of a list in their order, 1 + id, at most the last `length`, with 0 behind them."""
    return check(Sequence(category, length))


def target_mean(
    category: Plain,
    smoothing: float,
    outputs: int = 1,
    counts: Iterable[float] = (),
    sums: Iterable[float] = (),
    folds: int = 0,
    rows: int = 0,
    blocks: int = 1,
    scaled: bool = True,
) -> TargetMean:
    """Return the smoothed mean label of the row's category, of a training row without the labels of its fold.

    `counts` are rows of (fold, id), `sums` of labels of (fold, output, id), each as one list.
    """
    feature = TargetMean(
        category, smoothing, outputs, tuple(counts), tuple(sums), folds, rows, blocks, scaled
    )
    return check(feature)


def log_count(category: Plain, counts: Iterable[float] = (), scaled: bool = True) -> LogCount:
    """Return log(1 + n) of the number n of training rows with the row's category; `counts` holds n for each id."""
    return check(LogCount(category, tuple(counts), scaled))


def raw(column: str, part: str = "") -> Raw:
    """Return the number as it is, for trees, or a part of a date: year, month, day, weekday, hour or minute."""
    return check(Raw(column, part))  # type: ignore[arg-type]


def lags(count: int) -> list[Raw]:
    """Return the last `count` values of a series before the origin of an example, the latest first."""
    return [raw(f"{LAG}{lag}") for lag in range(1, count + 1)]


def codes(category: Plain) -> Codes:
    """Return the id as a number, for trees; missing and unseen values are NaN."""
    return check(Codes(category))


def stored(path: str | Path) -> tuple[Any, ...]:
    """Return the JSON list in a file: a vocabulary or boundaries too long for a program's text.

    Raises SpecError if the file is missing, or is no list of texts and numbers.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=tuple[str | int | float, ...])
    except OSError as error:
        raise SpecError(
            f"cannot read {path}: {error.strerror}", hint="it belongs beside the program"
        ) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is not a list of texts or numbers: {error}") from None
