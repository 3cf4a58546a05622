"""Checks of feature columns, whatever their origin: constructors of programs, a JobSpec."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby, pairwise
from typing import Any, TypeVar

from edl.errors import SemanticError, did_you_mean
from edl.features.computed import check as check_computed
from edl.spec import (
    Bucket,
    Category,
    CategoryId,
    Codes,
    Computed,
    Concat,
    Cross,
    DatePart,
    Embedding,
    Feature,
    HashBucket,
    ListOf,
    Log,
    LogCount,
    NGrams,
    Normalize,
    Numeric,
    OneHot,
    Periodic,
    PiecewiseLinear,
    Raw,
    Sequence,
    Standardize,
    TargetMean,
    Vector,
    Vocabulary,
    Year,
    num_ids,
)
from edl.spec.features import (
    CATEGORY_TYPES,
    COMBINERS,
    CROSSED_TYPES,
    INITIALS,
    ITEM_TYPES,
    LIST_TYPES,
    OF_NUMBERS,
    OF_TEXTS,
    PART_SIZES,
    PLAIN_TYPES,
    SINGLE_TYPES,
    sources,
)

_C = TypeVar("_C", bound=Feature | Category)


def check(column: _C) -> _C:
    """Return the column itself. Raises SemanticError if one of its values has a wrong type or is out of range."""
    rule = _RULES.get(type(column))
    if rule is None:
        raise SemanticError(f"not a feature column: {column!r}")
    rule(column)
    return column


def _name(value: object, what: str) -> None:
    if not isinstance(value, str) or not value:
        raise SemanticError(f"{what} needs the name of a column, not {value!r}")


def _source(column: Any) -> None:
    """Check the column of a feature. It may be a computed one if it reads numbers, or texts in JSON."""
    source = column.column
    of_text = isinstance(source, Computed) and source.operator == "JSON_TEXT"
    if isinstance(source, Computed) and isinstance(column, OF_TEXTS if of_text else OF_NUMBERS):
        check_computed(source)
    else:
        _name(column.column, type(column).__name__.lower())


def _number(column: Any, field: str) -> None:
    _check_finite(getattr(column, field), f"{field} of column {column.column}")


def _check_finite(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SemanticError(f"{what} must be a finite number, not {value!r}")


def _count(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63 - 1:
        raise SemanticError(f"{what} must be a positive integer, not {value!r}")


def _check_numbers(*fields: str) -> Callable[[Any], None]:
    def rule(column: Any) -> None:
        _source(column)
        for field in fields:
            _number(column, field)

    return rule


def _check_limit(column: Standardize) -> None:
    _standardize(column)
    _number(column, "limit")
    if column.limit < 0:
        raise SemanticError(
            f"limit of column {column.column} must not be negative, it is {column.limit}",
            hint="0 means no limit",
        )


def _standardize(column: Standardize | Year | Periodic) -> None:
    _check_numbers("mean", "std")(column)
    if column.std < 0:
        raise SemanticError(f"std of column {column.column} must not be negative, it is {column.std}")


def _vector(column: Vector) -> None:
    _name(column.column, "vector")
    _delimiter(column)
    for name, values in (("mean", column.mean), ("std", column.std)):
        for value in values:
            _check_finite(value, f"{name} of column {column.column}")
    if not column.mean or len(column.std) not in (0, len(column.mean)):
        raise SemanticError(
            f"column {column.column} has {len(column.mean)} means and {len(column.std)} deviations",
            hint="a vector has a mean for each of its numbers, and a std for each or none",
        )
    if column.std and min(column.std) < 0:
        raise SemanticError(f"std of column {column.column} must not be negative, it is {min(column.std)}")


def _delimiter(column: Any) -> None:
    if not isinstance(column.delimiter, str) or not column.delimiter:
        raise SemanticError(
            f"the delimiter of column {column.column} must be a text, not {column.delimiter!r}"
        )


def _date_part(column: DatePart) -> None:
    _name(column.column, "date_part")
    if column.part not in PART_SIZES:
        raise SemanticError(
            f"a date has no part {column.part!r}", hint=did_you_mean(str(column.part), PART_SIZES)
        )


def _normalize(column: Normalize) -> None:
    _check_numbers("min", "max", "mean")(column)
    if column.min > column.max:
        raise SemanticError(f"min of column {column.column} is {column.min}, above its max {column.max}")


def _log(column: Log) -> None:
    _check_numbers("mean")(column)
    if column.mean <= -1:
        raise SemanticError(
            f"mean of column {column.column} is {column.mean}, which has no log(1 + x)",
            hint="shift the column in the query so that it is not negative",
        )


def _piecewise_linear(column: PiecewiseLinear) -> None:
    _boundaries(column)
    if len(column.boundaries) < 2:
        raise SemanticError(
            f"column {column.column} has {len(column.boundaries)} boundaries", hint="a bin lies between two"
        )
    if not isinstance(column.nulls, bool):
        raise SemanticError(f"nulls of column {column.column} must be True or False, not {column.nulls!r}")


def _boundaries(column: Bucket | PiecewiseLinear) -> None:
    _source(column)
    for value in column.boundaries:
        _check_finite(value, f"a boundary of column {column.column}")
    for lower, upper in pairwise(column.boundaries):
        if lower >= upper:
            raise SemanticError(
                f"boundaries of column {column.column} must ascend, {upper} follows {lower}",
                hint="sort them and remove duplicates",
            )


def _check_size(column: Any) -> None:
    _source(column)
    _count(column.size, f"size of column {column.column}")


def _vocabulary(column: Vocabulary) -> None:
    _source(column)
    if not column.values:
        raise SemanticError(f"the vocabulary of column {column.column} is empty")
    kinds = {type(value) for value in column.values}
    if kinds not in ({str}, {int}):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise SemanticError(
            f"the vocabulary of column {column.column} must be all text or all integers, not {names}"
        )
    _check_distinct(column.values, f"the vocabulary of column {column.column}")


def _check_distinct(values: tuple[object, ...], what: str) -> None:
    if len(set(values)) < len(values):
        value, times = Counter(values).most_common(1)[0]
        raise SemanticError(f"{what} holds {value!r} {times} times")


def _cross(column: Cross) -> None:
    for part in column.columns:
        if isinstance(part, CROSSED_TYPES):
            check(part)
        else:
            _name(part, "cross")
    if len(column.columns) < 2:
        raise SemanticError("cross needs at least two columns")
    _check_distinct(column.columns, "cross")
    _count(column.size, f"size of the cross of {', '.join(map(str, sources(column)))}")


def _list_of(column: ListOf) -> None:
    if not isinstance(column.category, ITEM_TYPES):
        raise SemanticError(
            f"list_of takes the category of an item, not {column.category!r}",
            hint="category_id, hash_bucket and vocabulary make one",
        )
    check(column.category)
    _delimiter(column)
    if not isinstance(column.weights, str) or column.weights == column.delimiter:
        raise SemanticError(
            f"the separator of weights of column {column.column} must be a text other than its delimiter, "
            f"not {column.weights!r}"
        )


def _periodic(column: Periodic) -> None:
    _standardize(column)
    _count(column.frequencies, f"frequencies of column {column.column}")


def _ngrams(column: NGrams) -> None:
    _check_size(column)
    _count(column.n, f"n of column {column.column}")


def _target_mean(column: TargetMean) -> None:
    _check_plain(column.category, "target_mean")
    _check_finite(column.smoothing, "smoothing of target_mean")
    _count(column.outputs, "outputs of target_mean")
    _count(column.blocks, "blocks of target_mean")
    if column.smoothing < 0:
        raise SemanticError(f"smoothing of target_mean must not be negative, it is {column.smoothing}")
    if column.counts or column.sums:
        _count(column.folds, "folds of target_mean")
        _count(column.rows, "rows of target_mean")
        if column.folds % column.blocks:
            raise SemanticError(
                f"target_mean has {column.folds} folds, and {column.blocks} blocks of them are not equal"
            )
        count = column.folds * num_ids(column.category)
        _statistics("counts", column.counts, count)
        _statistics("sums", column.sums, count * column.outputs)


def _log_count(column: LogCount) -> None:
    _check_plain(column.category, "log_count")
    if column.counts:
        _statistics("counts", column.counts, num_ids(column.category))


def _statistics(name: str, values: tuple[float, ...], count: int) -> None:
    for value in values:
        _check_finite(value, f"a number of {name}")
    if len(values) != count:
        raise SemanticError(f"{name} has {len(values):,} numbers; the category has {count:,} in its folds")
    if name == "counts" and (min(values) < 0 or not sum(values)):
        raise SemanticError("counts must not be negative, and not all 0")


def _concat(column: Concat) -> None:
    for part in column.categories:
        if not isinstance(part, SINGLE_TYPES):
            raise SemanticError(f"concat takes categories, not {part!r}")
        check(part)
    if len(column.categories) < 2:
        raise SemanticError("concat needs at least two categories")


def _one_hot(column: OneHot) -> None:
    _category(column.category, "one_hot")


def _embedding(column: Embedding) -> None:
    _category(column.category, "embedding")
    _count(column.dim, "dim of an embedding")
    if column.combiner not in COMBINERS:
        hint = did_you_mean(str(column.combiner), COMBINERS)
        raise SemanticError(f"an embedding has no combiner {column.combiner!r}", hint=hint)
    if column.initial not in INITIALS:
        hint = did_you_mean(str(column.initial), INITIALS)
        raise SemanticError(f"an embedding has no initial values {column.initial!r}", hint=hint)
    if isinstance(column.table, bool) or not isinstance(column.table, int) or column.table < 0:
        raise SemanticError(f"table of an embedding must be 0 or a positive integer, not {column.table!r}")


def check_tables(columns: Iterable[Feature]) -> None:
    """Raise SemanticError if features with one table are no neighbours, or their vectors differ in kind."""
    seen: set[int] = set()
    for table, run in groupby(
        columns, key=lambda feature: feature.table if isinstance(feature, Embedding) else 0
    ):
        sharing = [feature for feature in run if isinstance(feature, Embedding)]
        names = ", ".join(str(source) for feature in sharing for source in sources(feature))
        if table and table in seen:
            raise SemanticError(
                f"the embedding of {names} is apart from others of table {table}", hint="put them together"
            )
        if table and len(set(map(_vectors, sharing))) > 1:
            raise SemanticError(
                f"the embeddings of {names} share a table, and differ in their vectors or ids"
            )
        seen.add(table)


def _vectors(column: Embedding) -> tuple[object, ...]:
    """Return all that embeddings of one table have in common."""
    category = column.category
    weighted = category.weights != "" if isinstance(category, ListOf) else None
    is_list = isinstance(category, LIST_TYPES)
    return num_ids(category), column.dim, column.combiner, column.initial, is_list, weighted


def _sequence(column: Sequence) -> None:
    if not isinstance(column.category, ListOf | NGrams):
        raise SemanticError(
            f"sequence takes lists, not {column.category!r}", hint="list_of and ngrams make them"
        )
    check(column.category)
    _count(column.length, "length of a sequence")


def _raw(column: Raw) -> None:
    _source(column)
    date_parts = ("year", *PART_SIZES)
    if column.part and column.part not in date_parts:
        raise SemanticError(
            f"a date has no part {column.part!r}", hint=did_you_mean(str(column.part), date_parts)
        )
    if column.part:
        _name(column.column, f"the {column.part}")


def _codes(column: Codes) -> None:
    _check_plain(column.category, "codes")


def _check_plain(category: object, what: str) -> None:
    if not isinstance(category, PLAIN_TYPES):
        raise SemanticError(
            f"{what} takes a category with one id per row, not {category!r}",
            hint="bucket, category_id, hash_bucket, vocabulary and cross make one; lists become one_hot",
        )
    check(category)


def _category(category: object, what: str) -> None:
    if not isinstance(category, CATEGORY_TYPES):
        raise SemanticError(
            f"{what} takes a category, not {category!r}",
            hint="bucket, category_id, hash_bucket, vocabulary, cross, list_of and concat make one",
        )
    check(category)


_RULES: Mapping[type, Callable[[Any], None]] = {
    Numeric: _check_numbers("mean"),
    Standardize: _check_limit,
    Normalize: _normalize,
    Log: _log,
    Year: _standardize,
    Vector: _vector,
    PiecewiseLinear: _piecewise_linear,
    Periodic: _periodic,
    Bucket: _boundaries,
    CategoryId: _check_size,
    HashBucket: _check_size,
    Vocabulary: _vocabulary,
    Cross: _cross,
    DatePart: _date_part,
    ListOf: _list_of,
    NGrams: _ngrams,
    Concat: _concat,
    OneHot: _one_hot,
    Sequence: _sequence,
    Embedding: _embedding,
    TargetMean: _target_mean,
    LogCount: _log_count,
    Raw: _raw,
    Codes: _codes,
}
