"""Feature columns as data: what a column of the table becomes on its way into the model.

A feature column is a small tree with its fitted parameters in it: `OneHot(Vocabulary("city", ("oslo", "rome")))`.
The same objects stand in the JobSpec (as tagged JSON), in a generated program (written as the constructor calls
of `edl.features`) and in a model's archive. `edl.features` computes them.

Two families. A *dense* column yields float32 values, one or several. A *category* yields one id per row in
[0, num_ids): `size` regular ids, and the last, id `size`, is *missing or unseen* (NULL, a level or number that training
did not have). It enters a model through `OneHot` or `Embedding`. One of lists yields any number of ids per row:
`Embedding` combines their vectors, and `OneHot` adds them up, which makes it dense. A number that is NULL or not finite
becomes the `mean` of the training rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeVar

import msgspec


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op"):
    """A node of a feature column's tree."""


# Dense columns -------------------------------------------------------------------------------------------


class Numeric(Column, frozen=True, tag="numeric"):
    """The number as it is."""

    column: str
    mean: float = 0.0  # stands in for NULL


class Standardize(Column, frozen=True, tag="standardize"):
    """(x - mean) / std, with the population deviation; a NULL becomes 0. A std of 0 yields 0."""

    column: str
    mean: float
    std: float


class Normalize(Column, frozen=True, tag="normalize"):
    """(x - min) / (max - min), not clipped outside; 0 when min equals max."""

    column: str
    min: float
    max: float
    mean: float


class Log(Column, frozen=True, tag="log"):
    """log(1 + x); numbers at or below -1, which have no logarithm, become the mean as NULL does."""

    column: str
    mean: float  # of x, before the logarithm


class Year(Column, frozen=True, tag="year"):
    """(year - mean) / std of a date or timestamp, in UTC; mean and std are those of the year. A NULL becomes 0."""

    column: str
    mean: float
    std: float


class Vector(Column, frozen=True, tag="vector"):
    """The numbers of a cell: of a list, or of a text with `delimiter` between them, as many as `mean` has.

    Each as it is, or, with `std`, (x - mean) / std of its place. One that is NULL or not finite becomes the mean, and
    so do all of a cell that is NULL, or empty.
    """

    column: str
    mean: tuple[float, ...]
    std: tuple[float, ...] = ()
    delimiter: str = ","


# Categories ----------------------------------------------------------------------------------------------


class Bucket(Column, frozen=True, tag="bucket"):
    """Which interval of the ascending `boundaries` holds the number: id = count of boundaries <= x."""

    column: str
    boundaries: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.boundaries) + 1


class CategoryId(Column, frozen=True, tag="category_id"):
    """An integer that is an id in [0, size) already."""

    column: str
    size: int


class HashBucket(Column, frozen=True, tag="hash_bucket"):
    """A stable hash of the text modulo `size`; an integer or boolean hashes as its decimal or true/false text."""

    column: str
    size: int


class Vocabulary(Column, frozen=True, tag="vocabulary"):
    """The position of the value in `values`: all text or all integers, ordered by count, then bytes."""

    column: str
    values: tuple[str | int, ...]

    @property
    def size(self) -> int:
        return len(self.values)


class Cross(Column, frozen=True, tag="cross"):
    """The hash of several columns' values together, modulo `size`; NULL in any of them is missing."""

    columns: tuple[str, ...]
    size: int


Part = Literal["month", "day", "weekday", "hour", "minute"]
PART_SIZES: Mapping[str, int] = {"month": 12, "day": 31, "weekday": 7, "hour": 24, "minute": 60}


class DatePart(Column, frozen=True, tag="date_part"):
    """A part of a date, time or timestamp, in UTC: January, the first, Monday, midnight are id 0."""

    column: str
    part: Part

    @property
    def size(self) -> int:
        return PART_SIZES[self.part]


ItemCategory = CategoryId | HashBucket | Vocabulary


class ListOf(Column, frozen=True, tag="list_of"):
    """Lists of ids: the `category` of each item of a list column, or of a text with `delimiter` between its items.

    weights: what stands between an item and its weight, as in 3:0.5; empty: each item counts once. A NULL is an empty
    list, and so is an empty text; an item that is no id of the category is unseen.
    """

    category: ItemCategory
    delimiter: str = ","
    weights: str = ""

    @property
    def column(self) -> str:
        return self.category.column

    @property
    def size(self) -> int:
        return self.category.size


Single = Bucket | CategoryId | HashBucket | Vocabulary | Cross | DatePart | ListOf


class Concat(Column, frozen=True, tag="concat"):
    """The ids of several categories as those of one, a list per row: each category's follow those of the one before.

    The ids for what is missing or unseen are among them, so that each category keeps its own.
    """

    categories: tuple[Single, ...]

    @property
    def size(self) -> int:
        return sum(map(num_ids, self.categories)) - 1


Category = Single | Concat


class OneHot(Column, frozen=True, tag="one_hot"):
    """num_ids values, 1 at the row's id; of a list, the sum of the weights at each of its ids."""

    category: Category


COMBINERS = ("sum", "mean", "sqrtn")
INITIALS = ("uniform", "normal", "zeros")


class Embedding(Column, frozen=True, tag="embedding"):
    """The trained vector of the row's id, `dim` values."""

    category: Category
    dim: int
    combiner: str = "sum"  # of several ids in one row; one of COMBINERS
    initial: str = "uniform"  # its first values; one of INITIALS


Dense = Numeric | Standardize | Normalize | Log | Year | Vector
Feature = Dense | OneHot | Embedding

DENSE_TYPES = (Numeric, Standardize, Normalize, Log, Year, Vector)
SINGLE_TYPES = (Bucket, CategoryId, HashBucket, Vocabulary, Cross, DatePart, ListOf)
CATEGORY_TYPES = (*SINGLE_TYPES, Concat)
ITEM_TYPES = (CategoryId, HashBucket, Vocabulary)
LIST_TYPES = (ListOf, Concat)  # categories of any number of ids per row


AnyColumn = TypeVar("AnyColumn", bound=Feature | Category)


def num_ids(category: Category) -> int:
    """Ids of a category, the missing-or-unseen one included."""
    return category.size + 1


def width(feature: Feature) -> int:
    """How many float32 values the feature gives a model per row."""
    if isinstance(feature, OneHot):
        return num_ids(feature.category)
    if isinstance(feature, Vector):
        return len(feature.mean)
    return feature.dim if isinstance(feature, Embedding) else 1


def is_dense(feature: Feature) -> bool:
    """Whether the feature is computed as numbers, and not by the model from ids."""
    return isinstance(feature, DENSE_TYPES) or (
        isinstance(feature, OneHot) and isinstance(feature.category, LIST_TYPES)
    )


def source_columns(column: Feature | Category) -> Iterator[str]:
    """The table columns that a feature reads."""
    if isinstance(column, OneHot | Embedding | ListOf):
        yield from source_columns(column.category)
    elif isinstance(column, Concat):
        for each in column.categories:
            yield from source_columns(each)
    elif isinstance(column, Cross):
        yield from column.columns
    else:
        yield column.column


def with_columns(column: AnyColumn, names: Mapping[str, str]) -> AnyColumn:
    """The same feature over other table columns: old name -> new name; others stay."""
    if isinstance(column, OneHot | Embedding | ListOf):
        return msgspec.structs.replace(column, category=with_columns(column.category, names))
    if isinstance(column, Concat):
        return msgspec.structs.replace(
            column, categories=tuple(with_columns(each, names) for each in column.categories)
        )
    if isinstance(column, Cross):
        return msgspec.structs.replace(
            column, columns=tuple(names.get(name, name) for name in column.columns)
        )
    return msgspec.structs.replace(column, column=names.get(column.column, column.column))


# Labels --------------------------------------------------------------------------------------------------


class RegressionLabel(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="regression", tag_field="op"
):
    """A number to predict; labels are float32 of shape (n, 1), the model has one output.

    mean, std: of the training rows. A built-in model ends with `outputs * std + mean` and measures its loss in
    units of std, so that a learning rate means the same for an income as for a ratio.
    """

    column: str
    mean: float = 0.0
    std: float = 1.0

    @property
    def outputs(self) -> int:
        return 1


class ClassLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="class", tag_field="op"):
    """One of `classes`, in their natural order: all text, all integers or all booleans.

    Two classes: float32 labels of shape (n, 1), one logit, of `classes[1]`. More: int64 of shape (n,), a logit each.
    """

    column: str
    classes: tuple[str | bool | int, ...]

    @property
    def binary(self) -> bool:
        return len(self.classes) == 2

    @property
    def outputs(self) -> int:
        return 1 if self.binary else len(self.classes)


class RawLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="raw", tag_field="op"):
    """What a hand-written module predicts, when it does not say what that is: the model's outputs as they are."""

    column: str

    @property
    def outputs(self) -> int:
        """Not known before the model is there."""
        return 0


Label = RegressionLabel | ClassLabel | RawLabel
