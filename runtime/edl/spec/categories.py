"""Categories: columns as ids, from which features with a weight or vector of each id are made.

A category yields one id per row in [0, num_ids): `size` regular ids, id `size` of a missing value, and in some an id of
unseen values behind it. A category of lists yields any number of ids per row. See `edl.spec.features`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import msgspec

from edl.spec.column import Array, Column, Computable, Place
from edl.spec.computed import Source

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# Places of categories with one id per row, of lists, and of those that may be parts of others.
_MODEL: frozenset[Place] = frozenset({"model"})
_SINGLE: frozenset[Place] = _MODEL | {"concat"}
_LISTS: frozenset[Place] = _SINGLE | {"sequence"}
_ONE_ID: frozenset[Place] = _SINGLE | {"encoding"}
_CROSSED: frozenset[Place] = _ONE_ID | {"cross"}
_ITEM: frozenset[Place] = _CROSSED | {"item"}


# Id of an unseen value: 0 as of the most frequent value, or `size` + 1, an id of its own; unset, `size` as of NULL.
UNSEEN = ("frequent", "other")
Unseen = Literal["frequent", "other"] | msgspec.UnsetType


class CategoryColumn(Column, frozen=True):
    """Category, which a feature of a model is made of."""

    array: ClassVar[Array] = ""

    @property
    def size(self) -> int:
        """Number of regular ids, which is the id of NULL."""
        return 0

    @property
    def unseen(self) -> Unseen:
        """Id of a value that training did not have."""
        return msgspec.UNSET

    @property
    def unseen_id(self) -> int:
        return {"frequent": 0, "other": self.size + 1}.get(str(self.unseen), self.size)

    @property
    def has_other(self) -> bool:
        """True if unseen values have an id of their own, behind the id of NULL."""
        return self.unseen == "other"

    @property
    def learns_unseen(self) -> bool:
        """True if a value may be unseen, and a network has an id for it that no known value has."""
        return False

    def with_unseen(self, choose: Callable[[Any], Unseen]) -> Self:
        """Return the category with the chosen ids of unseen values, also in its parts."""
        return self


class Bucket(CategoryColumn, frozen=True, tag="bucket"):
    """Interval of the ascending `boundaries` that holds the number: id = count of boundaries <= x."""

    computed: ClassVar[Computable] = "numbers"
    places: ClassVar[frozenset[Place]] = _CROSSED

    column: Source
    boundaries: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.boundaries) + 1

    @property
    def is_ordered(self) -> bool:
        return True


class CategoryId(CategoryColumn, frozen=True, tag="category_id"):
    """Integer that is already an id in [0, size); another number is unseen."""

    computed: ClassVar[Computable] = "numbers"
    places: ClassVar[frozenset[Place]] = _ITEM
    stated: ClassVar[tuple[str, ...]] = ("size",)

    column: Source
    size: int
    unseen: Unseen = msgspec.UNSET

    @property
    def learns_unseen(self) -> bool:
        return self.unseen != "frequent"

    def with_unseen(self, choose: Callable[[Any], Unseen]) -> Self:
        return msgspec.structs.replace(self, unseen=choose(self))


class HashBucket(CategoryColumn, frozen=True, tag="hash_bucket"):
    """Stable hash of the text modulo `size`; an integer or boolean hashes as its decimal or true/false text."""

    computed: ClassVar[Computable] = "texts"
    places: ClassVar[frozenset[Place]] = _ITEM
    stated: ClassVar[tuple[str, ...]] = ("size",)
    tells_neighbours: ClassVar[bool] = True

    column: Source
    size: int


class Vocabulary(CategoryColumn, frozen=True, tag="vocabulary"):
    """Position of the value in `values`: all text or all integers, ordered by count, then bytes; others are unseen."""

    computed: ClassVar[Computable] = "texts"
    places: ClassVar[frozenset[Place]] = _ITEM
    tells_neighbours: ClassVar[bool] = True

    column: Source
    values: tuple[str | int, ...]
    unseen: Unseen = msgspec.UNSET

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def levels(self) -> tuple[str | int, ...]:
        return self.values

    @property
    def is_fitted(self) -> bool:
        return True

    @property
    def learns_unseen(self) -> bool:
        return self.unseen != "frequent"

    def with_unseen(self, choose: Callable[[Any], Unseen]) -> Self:
        return msgspec.structs.replace(self, unseen=choose(self))


Part = Literal["month", "day", "weekday", "hour", "minute"]
PART_SIZES: Mapping[str, int] = {"month": 12, "day": 31, "weekday": 7, "hour": 24, "minute": 60}


class DatePart(CategoryColumn, frozen=True, tag="date_part"):
    """Part of a date, time or timestamp, in UTC: January, the first, Monday, midnight are id 0."""

    places: ClassVar[frozenset[Place]] = _CROSSED
    stated: ClassVar[tuple[str, ...]] = ("part",)

    column: str
    part: Part

    @property
    def size(self) -> int:
        return PART_SIZES[self.part]

    @property
    def function(self) -> str:
        return self.part

    @property
    def noun(self) -> str:
        return self.part


Crossed = Bucket | CategoryId | HashBucket | Vocabulary | DatePart


class Cross(CategoryColumn, frozen=True, tag="cross"):
    """Hash of several columns' values, or of categories' ids, together, modulo `size`.

    It is missing where a column is NULL, or the id of a category is none of its regular ones.
    """

    made_of: ClassVar[str] = "columns"
    places: ClassVar[frozenset[Place]] = _ONE_ID
    stated: ClassVar[tuple[str, ...]] = ("size",)
    tells_neighbours: ClassVar[bool] = True

    columns: tuple[str | Crossed, ...]
    size: int

    def with_unseen(self, choose: Callable[[Any], Unseen]) -> Self:
        parts = (
            part if isinstance(part, str) else part.with_unseen(lambda _: "frequent") for part in self.columns
        )
        return msgspec.structs.replace(self, columns=tuple(parts))


ItemCategory = CategoryId | HashBucket | Vocabulary


class ListOf(CategoryColumn, frozen=True, tag="list_of"):
    """Lists of ids: the `category` of each item of a list column, or of a text with `delimiter` between its items.

    `weights` separates an item from its weight, as in 3:0.5; if empty, each item counts once. A NULL is an empty
    list, and so is an empty text; an item that is no id of the category is unseen, as the category says.
    """

    made_of: ClassVar[str] = "category"
    places: ClassVar[frozenset[Place]] = _LISTS
    has_lists: ClassVar[bool] = True

    category: ItemCategory
    delimiter: str = ","
    weights: str = ""

    @property
    def column(self) -> str:
        return str(self.category.column)

    @property
    def size(self) -> int:
        return self.category.size

    @property
    def unseen(self) -> Unseen:
        return self.category.unseen

    @property
    def learns_unseen(self) -> bool:
        return self.category.learns_unseen

    @property
    def is_fitted(self) -> bool:
        return self.category.is_fitted


class NGrams(CategoryColumn, frozen=True, tag="ngrams"):
    """Lists of ids: a stable hash of each run of `n` characters in a text, modulo `size`.

    The text counts in lower case, with a blank before and after it and one blank for several. One that is shorter than
    `n` with its blanks is a single run. A NULL has no runs.
    """

    computed: ClassVar[Computable] = "texts"
    places: ClassVar[frozenset[Place]] = _LISTS
    has_lists: ClassVar[bool] = True
    stated: ClassVar[tuple[str, ...]] = ("n", "size")

    column: Source
    n: int
    size: int


Plain = Crossed | Cross  # one id per row
Single = Plain | ListOf | NGrams


class Concat(CategoryColumn, frozen=True, tag="concat"):
    """Ids of several categories in one id space, a list per row: each category's ids follow the ids of the one before.

    The ids of missing and of unseen values are among them, so that each category keeps its own.
    """

    made_of: ClassVar[str] = "categories"
    places: ClassVar[frozenset[Place]] = _MODEL
    has_lists: ClassVar[bool] = True

    categories: tuple[Single, ...]

    @property
    def size(self) -> int:
        return sum(map(num_ids, self.categories)) - 1

    @property
    def is_fitted(self) -> bool:
        return any(category.is_fitted for category in self.categories)

    @property
    def learns_unseen(self) -> bool:
        return any(category.learns_unseen for category in self.categories)

    def with_unseen(self, choose: Callable[[Any], Unseen]) -> Self:
        return msgspec.structs.replace(
            self, categories=tuple(part.with_unseen(choose) for part in self.categories)
        )


Category = Single | Concat


def num_ids(category: Category) -> int:
    """Return the number of ids of a category, including the ids of missing and of unseen values."""
    return category.size + 1 + category.has_other


def is_category(column: object) -> TypeIs[Category]:
    return isinstance(column, CategoryColumn)
