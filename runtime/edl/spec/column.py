"""Node of a feature column: what all kinds have in common, and the columns that they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self, TypeVar

import msgspec

from edl.spec.computed import Computed, Source, rename_columns, table_columns

# Array of the transform with the values of a feature, see `edl.features.Entry`: none of a category by itself, and ids
# of one to which the model gives its form.
Array = Literal["", "dense", "positions", "periodic", "ids", "sequence", "texts"]
# Where a category may stand: as item of a list, part of a cross, one id per row in an encoding or code, list of a
# sequence, part of a concat, and in a one-hot or embedding.
Place = Literal["item", "cross", "encoding", "sequence", "concat", "model"]
Computable = Literal["", "numbers", "texts"]  # computed columns that a feature may read


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op"):
    """Node of a feature column's tree.

    Each kind has, beside its fields, what the phases ask of it. Properties without an effect have a default here.
    """

    made_of: ClassVar[str] = "column"  # field with the columns or the categories that it reads
    computed: ClassVar[Computable] = ""
    stated: ClassVar[
        tuple[str, ...]
    ] = ()  # given by a statement, beside `made_of`; the rest is fitted to rows
    array: ClassVar[Array] = "dense"
    places: ClassVar[frozenset[Place]] = frozenset()
    has_lists: ClassVar[bool] = False  # any number of ids per row
    is_unchanged: ClassVar[bool] = False  # a number enters as it is
    is_for_trees: ClassVar[bool] = False
    needs_label: ClassVar[bool] = False  # it is fitted to labels, or trained on them
    hides_null: ClassVar[bool] = False  # NULL is as the mean
    tells_neighbours: ClassVar[bool] = False  # of whole numbers, each is a value of its own
    is_indicator: ClassVar[bool] = False  # of NULL
    number: ClassVar[Source] = ""  # column of numbers that it reads beside `made_of`

    @property
    def width(self) -> int:
        """Number of values per row that a model gets."""
        return 1

    @property
    def function(self) -> str:
        """Name of its constructor in `edl.features`."""
        return str(self.__struct_config__.tag)

    @property
    def moments(self) -> tuple[float, float] | None:
        """Mean and deviation by which a number is standardised; else None."""
        return None

    @property
    def noun(self) -> str:
        """Name for people, without the columns."""
        return str(self.__struct_config__.tag).replace("_", " ")

    @property
    def line(self) -> tuple[float, float] | None:
        """Shift and scale of a number that enters as (x - shift) / scale, or as 0 with a scale of 0; else None."""
        return self.moments

    @property
    def levels(self) -> tuple[str | int, ...]:
        """Values of a category that lists them."""
        return ()

    @property
    def delimiter(self) -> str:
        """Mark between the items of a text; empty of one value."""
        return ""

    @property
    def n(self) -> int:
        """Characters of the runs of a text that it counts; 0 of other values."""
        return 0

    @property
    def weights(self) -> str:
        """Separator of the items of lists from their weights; empty without weights."""
        return ""

    @property
    def part(self) -> str:
        """Part of a date or time that it reads; empty for the whole."""
        return ""

    @property
    def tree_form(self) -> Self:
        """Numbers for trees, which need no common scale of features."""
        return self

    @property
    def boundaries(self) -> tuple[float, ...]:
        """Ends of the intervals in which it counts a number."""
        return ()

    @property
    def is_ordered(self) -> bool:
        """True if greater ids mean greater values, so that a tree may compare them as numbers."""
        return False

    @property
    def is_fitted(self) -> bool:
        """True if the number of ids comes from the rows."""
        return False

    @property
    def tells_null(self) -> bool:
        """True if a number is something else than NULL in all of its values."""
        return self.is_indicator

    @property
    def dim(self) -> int:
        """Length of the trained vector of each id; 0 without vectors."""
        return 0

    @property
    def is_one_hot(self) -> bool:
        """True if the ids of its category enter the model without vectors."""
        return self.array == "ids" and not self.dim

    @property
    def combiner(self) -> str:
        """Way to make one vector of the vectors of several ids in a row; one of COMBINERS."""
        return "sum"

    @property
    def initial(self) -> str:
        """Initial values of the vectors."""
        return "uniform"

    @property
    def table(self) -> int:
        """Number of the table of vectors that it shares with others, or 0."""
        return 0


AnyColumn = TypeVar("AnyColumn", bound=Column)


def parts_of(column: Column) -> tuple[Source | Column, ...]:
    """Return the columns or the categories that a feature or category is made of."""
    made_of: Any = getattr(column, column.made_of)
    return made_of if isinstance(made_of, tuple) else (made_of,)


def nodes(column: Column) -> Iterator[Column]:
    """Yield a feature or category and all that it is made of, but for the columns."""
    yield column
    for part in parts_of(column):
        if isinstance(part, Column):
            yield from nodes(part)


def sources(column: Column) -> Iterator[Source]:
    """Yield the columns that a feature reads: the table's, and computed ones."""
    for part in parts_of(column):
        if isinstance(part, Column):
            yield from sources(part)
        else:
            yield part
    if column.number:
        yield column.number


def source_columns(column: Column) -> Iterator[str]:
    """Yield the table columns that a feature reads."""
    for source in sources(column):
        yield from dict.fromkeys(table_columns(source))


def matrix_columns(feature: Column) -> Iterator[tuple[str, ...]]:
    """Yield the table columns behind each of the columns that a feature has in a matrix."""
    names = tuple(source_columns(feature))
    yield from (names for _ in range(feature.width))


def with_columns(column: AnyColumn, names: Mapping[str, Source]) -> AnyColumn:
    """Return the same feature over other columns (old name -> new column); others stay."""
    parts = tuple(
        with_columns(part, names) if isinstance(part, Column) else rename_columns(part, names)
        for part in parts_of(column)
    )
    if column.made_of == "columns" and any(isinstance(part, Computed) for part in parts):
        raise TypeError("a cross has a computed column in a category")
    is_tuple = isinstance(getattr(column, column.made_of), tuple)
    number = {"number": rename_columns(column.number, names)} if column.number else {}
    return msgspec.structs.replace(column, **{column.made_of: parts if is_tuple else parts[0]}, **number)
