"""Categories: constructors, checks, and for each kind conversion of a batch's values to int64 ids in [0, num_ids).

Id `size` is a missing value: NULL, NaN, an infinity. A value outside the vocabulary or the range, as an integer
column's 2.5, is unseen, and has the category's `unseen_id`. `encoder` prepares everything that does not depend on the
batch; an encoder maps a batch to ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edl.errors import SemanticError, did_you_mean
from edl.features import character_ngrams, hashing
from edl.features.arrays import Ints, integers, is_text, missing_mask, numbers, plain_array, texts, valid_mask
from edl.features.calendar import parts
from edl.features.computed import column as column_of
from edl.features.hashing import combine, hash_texts
from edl.features.kinds import (
    check,
    check_boundaries,
    check_category,
    check_count,
    check_delimiter,
    check_distinct,
    check_fields,
    check_name,
    check_size,
    check_source,
    fits,
)
from edl.features.lists import Lists
from edl.ragged import Ragged
from edl.spec import (
    Bucket,
    Category,
    CategoryId,
    Concat,
    Cross,
    DatePart,
    HashBucket,
    ItemCategory,
    ListOf,
    NGrams,
    Part,
    Source,
    Vocabulary,
    num_ids,
    sources,
)
from edl.spec.categories import PART_SIZES, UNSEEN, Crossed, Single, Unseen

Ids = Ints | Ragged
Encoder = Callable[[pa.RecordBatch], Ids]
_ArrayEncoder = Callable[[pa.Array], Ints]

_INT64 = np.iinfo(np.int64)
_BOOLEANS: Mapping[object, int] = {"false": 0, "true": 1}  # texts of booleans, and what they are as numbers


# Constructors ----------------------------------------------------------------------------------------------


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


def category_id(column: str, size: int, unseen: Unseen = msgspec.UNSET) -> CategoryId:
    """Return the integer itself, an id in [0, size). `unseen`: as which id others count, see `vocabulary`."""
    return check(CategoryId(column, size, unseen))


def hash_bucket(column: Source, size: int) -> HashBucket:
    """Return a stable hash of the value's text, modulo `size`."""
    return check(HashBucket(column, size))


def vocabulary(column: Source, values: Iterable[str | int], unseen: Unseen = msgspec.UNSET) -> Vocabulary:
    """Return the value's position in `values`.

    `unseen`: another value counts as the first one, which is the most frequent, or has an id of its own: frequent or
    other; by default it counts as NULL.
    """
    return check(Vocabulary(column, tuple(values), unseen))


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


# Checks ----------------------------------------------------------------------------------------------------


@check_fields.register
def _check_bucket(column: Bucket) -> None:
    check_boundaries(column)


@check_fields.register
def _check_category_id(column: CategoryId) -> None:
    check_size(column)
    _check_unseen(column)


@check_fields.register
def _check_hash_bucket(column: HashBucket) -> None:
    check_size(column)


@check_fields.register
def _check_vocabulary(column: Vocabulary) -> None:
    check_source(column)
    if not column.values:
        raise SemanticError(f"the vocabulary of column {column.column} is empty")
    kinds = {type(value) for value in column.values}
    if kinds not in ({str}, {int}):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise SemanticError(
            f"the vocabulary of column {column.column} must be all text or all integers, not {names}"
        )
    check_distinct(column.values, f"the vocabulary of column {column.column}")
    _check_unseen(column)


def _check_unseen(column: CategoryId | Vocabulary) -> None:
    if column.unseen and column.unseen not in UNSEEN:
        raise SemanticError(
            f"unseen of column {column.column} must be {' or '.join(UNSEEN)}, not {column.unseen!r}"
        )


@check_fields.register
def _check_date_part(column: DatePart) -> None:
    check_name(column.column, "date_part")
    if column.part not in PART_SIZES:
        raise SemanticError(
            f"a date has no part {column.part!r}", hint=did_you_mean(str(column.part), PART_SIZES)
        )


@check_fields.register
def _check_cross(column: Cross) -> None:
    for part in column.columns:
        if fits(part, "cross"):
            check_fields(part)
        else:
            check_name(part, "cross")
    if len(column.columns) < 2:
        raise SemanticError("cross needs at least two columns")
    check_distinct(column.columns, "cross")
    check_count(column.size, f"size of the cross of {', '.join(map(str, sources(column)))}")


@check_fields.register
def _check_list_of(column: ListOf) -> None:
    check_category(column.category, "item", "list_of")
    check_delimiter(column)
    if not isinstance(column.weights, str) or column.weights == column.delimiter:
        raise SemanticError(
            f"the separator of weights of column {column.column} must be a text other than its delimiter, "
            f"not {column.weights!r}"
        )


@check_fields.register
def _check_ngrams(column: NGrams) -> None:
    check_size(column)
    check_count(column.n, f"n of column {column.column}")


@check_fields.register
def _check_concat(column: Concat) -> None:
    for part in column.categories:
        if not fits(part, "concat"):
            raise SemanticError(f"concat takes categories, not {part!r}")
        check_fields(part)
    if len(column.categories) < 2:
        raise SemanticError("concat needs at least two categories")


# Ids -------------------------------------------------------------------------------------------------------


def encoder(category: Category) -> Encoder:
    """Return the function from a batch to the ids of its rows, shape (n,), or to lists of ids."""
    return ENCODERS[type(category)](category)


def encode_unknown_as_null(category: Category) -> Encoder:
    """Return the function from a batch to ids, `size` of NULL and of every value that is no level of the category."""
    return encoder(category.with_unseen(lambda _: msgspec.UNSET))


def level_encoder(column: str, values: tuple[str | int, ...]) -> Encoder:
    """Return the function from a batch to the positions of a column's values in the list."""
    return encoder(Vocabulary(column, values))


def _encode_column(category: Bucket | CategoryId | HashBucket | Vocabulary | DatePart) -> Encoder:
    """Return the encoder of a category of one column."""
    encode, column, missing = ARRAY_ENCODERS[type(category)](category), category.column, category.size
    return lambda batch: _by_dictionary(column_of(batch, column), encode, missing)


class Levels:
    """Fixed list of values, with the lookup of a column's values in it.

    Text is compared as text, integers as integers; the other of the two is accepted if its meaning is unambiguous
    ('3' and 3, 'true' and True). Booleans are 'true' and 'false', 0 and 1: a database may have no type for them.
    """

    def __init__(self, column: str, values: tuple[str | bool | int, ...]) -> None:
        self.column = column
        self._texts = pa.array([_text(value) for value in values], pa.large_string())
        self._has_words = isinstance(values[0], str | bool)
        self._integers: pa.Array | None = None
        numbers = [_BOOLEANS.get(value, value) for value in values]
        if all(isinstance(number, int) and _INT64.min <= number <= _INT64.max for number in numbers):
            self._integers = pa.array([int(number) for number in numbers], pa.int64())

    def positions(self, array: pa.Array) -> pa.Array:
        """Return positions as int32, NULL for values that are not in the list."""
        array = plain_array(array)
        is_word = is_text(array.type) or pa.types.is_boolean(array.type)
        if self._integers is None or (self._has_words and is_word):
            text = texts(array, self.column)
            return pc.index_in(text, value_set=self._texts.cast(text.type), skip_nulls=True)
        values, is_valid = integers(array, self.column)
        return pc.index_in(pa.array(values, mask=~is_valid), value_set=self._integers, skip_nulls=True)


def _text(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _by_dictionary(array: pa.Array, encode: _ArrayEncoder, missing: int) -> Ints:
    """Encode the array; of a dictionary-encoded column, only the distinct values."""
    if not isinstance(array, pa.DictionaryArray):
        return encode(array)
    ids: Ints = np.append(encode(array.dictionary), missing)
    indices = array.indices
    if indices.null_count:
        indices = indices.fill_null(len(array.dictionary))
    of_rows: Ints = ids[indices.to_numpy()]
    return of_rows


# One maker per kind of category ----------------------------------------------------------------------------


def _bucket(category: Bucket) -> _ArrayEncoder:
    boundaries = np.asarray(category.boundaries, dtype=np.float64)

    def encode(array: pa.Array) -> Ints:
        values = numbers(array, str(category.column))
        ids = np.searchsorted(boundaries, values, side="right")
        ids[~np.isfinite(values)] = category.size
        return ids.astype(np.int64, copy=False)

    return encode


def _category_id(category: CategoryId) -> _ArrayEncoder:
    def encode(array: pa.Array) -> Ints:
        values, is_valid = integers(array, str(category.column))
        is_known = is_valid & (values >= 0) & (values < category.size)
        return np.where(is_known, values, _unknown_ids(category, array))

    return encode


def _hash_bucket(category: HashBucket) -> _ArrayEncoder:
    def encode(array: pa.Array) -> Ints:
        text = texts(array, str(category.column))
        ids = hashing.bucket(hash_texts(text), category.size)
        ids[~valid_mask(text)] = category.size
        return ids

    return encode


def _vocabulary(category: Vocabulary) -> _ArrayEncoder:
    levels = Levels(str(category.column), category.values)

    def encode(array: pa.Array) -> Ints:
        positions = levels.positions(array)
        ids = np.asarray(positions.fill_null(category.size).to_numpy(), dtype=np.int64)
        if not category.unseen or not positions.null_count:
            return ids
        return np.where(valid_mask(positions), ids, _unknown_ids(category, array))

    return encode


def _unknown_ids(category: CategoryId | Vocabulary, array: pa.Array) -> Any:
    """Return the ids of the values that are no regular id: `size` of missing ones, and of others the unseen id."""
    if not category.unseen:
        return category.size
    return np.where(missing_mask(array), category.size, category.unseen_id)


def _date_part(category: DatePart) -> _ArrayEncoder:
    def encode(array: pa.Array) -> Ints:
        ids, is_valid = parts(array, category.part, category.column)
        return np.where(is_valid, ids, category.size)

    return encode


def _cross(category: Cross) -> Encoder:
    parts = [_make_text_reader(part) for part in category.columns]

    def encode(batch: pa.RecordBatch) -> Ints:
        columns = [part(batch) for part in parts]
        ids = hashing.bucket(combine([hash_texts(column) for column in columns]), category.size)
        ids[~np.logical_and.reduce([valid_mask(column) for column in columns])] = category.size
        return ids

    return encode


def _make_text_reader(part: str | Crossed) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return the function from a batch to the texts of a column, or of a category's ids; NULL for missing ones."""
    if isinstance(part, str):
        return lambda batch: texts(batch.column(part), part)
    encode = encoder(part)

    def text(batch: pa.RecordBatch) -> pa.Array:
        ids = encode(batch)
        return pa.array(ids, mask=np.asarray(ids) >= part.size).cast(pa.string())

    return text


def _list_of(category: ListOf) -> Encoder:
    encode_items = ARRAY_ENCODERS[type(category.category)](category.category)

    def encode(batch: pa.RecordBatch) -> Ragged:
        column = column_of(batch, category.category.column)
        cells = Lists(column, category.column, category.delimiter, category.weights)
        return Ragged(encode_items(cells.items), cells.offsets, cells.weights)

    return encode


def _ngrams(category: NGrams) -> Encoder:
    def encode(batch: pa.RecordBatch) -> Ragged:
        hashes, offsets = character_ngrams.ngrams(
            texts(column_of(batch, category.column), str(category.column)), category.n
        )
        return Ragged(hashing.bucket(hashes, category.size), offsets)

    return encode


def _concat(category: Concat) -> Encoder:
    encoders = [encoder(member) for member in category.categories]
    sizes = [num_ids(member) for member in category.categories]
    firsts = np.cumsum([0, *sizes[:-1]])

    def encode(batch: pa.RecordBatch) -> Ragged:
        parts = [_as_lists(encode(batch)) for encode in encoders]
        order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")
        values = np.concatenate([part.values + first for part, first in zip(parts, firsts, strict=True)])
        weights = np.concatenate([_weights(part) for part in parts])[order]
        weighted = any(part.weights is not None for part in parts)
        offsets = np.sum([part.offsets for part in parts], axis=0)
        return Ragged(values[order], offsets, weights if weighted else None)

    return encode


def _as_lists(ids: Ids) -> Ragged:
    return ids if isinstance(ids, Ragged) else Ragged(ids, np.arange(len(ids) + 1))


def _weights(ids: Ragged) -> npt.NDArray[np.float32]:
    return np.ones(len(ids.values), np.float32) if ids.weights is None else ids.weights


ARRAY_ENCODERS: Mapping[type, Callable[[Any], _ArrayEncoder]] = {
    Bucket: _bucket,
    CategoryId: _category_id,
    HashBucket: _hash_bucket,
    Vocabulary: _vocabulary,
    DatePart: _date_part,
}
ENCODERS: Mapping[type, Callable[[Any], Encoder]] = {
    **dict.fromkeys(ARRAY_ENCODERS, _encode_column),
    Cross: _cross,
    ListOf: _list_of,
    NGrams: _ngrams,
    Concat: _concat,
}
