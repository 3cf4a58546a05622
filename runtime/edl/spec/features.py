"""Feature columns as data: the transformation of table columns to model inputs.

A feature column is a small tree with its fitted parameters: `OneHot(Vocabulary("city", ("oslo", "rome")))`. The same
objects are used in the JobSpec (as tagged JSON), in a generated program (as constructor calls of `edl.features`) and
in a model's archive. `edl.features` computes them.

There are two families. A *dense* column yields numbers, one or several. A *category* yields one id per row in
[0, num_ids): `size` regular ids, and id `size` of a *missing* value, NULL. An *unseen* value, which training did not
have, has an id that the field `unseen` chooses. It enters a model through `OneHot` or `Embedding`. A category of lists
yields any number of ids per row: `Embedding` combines their vectors, and `OneHot` sums them, which makes it dense. A
number that is NULL or not finite becomes the `mean` of the training rows, and `IsNull` tells it from the mean. Models
of trees take `Raw` numbers and the `Codes` of categories instead, in which a missing value stays missing (NaN). Where a
number is read, the `column` may be a computed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import msgspec

from edl.spec.categories import Category, ListOf, NGrams, Plain, is_category, num_ids
from edl.spec.column import Array, Column, Computable
from edl.spec.computed import Source

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# Dense columns -------------------------------------------------------------------------------------------


class Numeric(Column, frozen=True, tag="numeric"):
    """Unchanged number."""

    is_unchanged: ClassVar[bool] = True
    hides_null: ClassVar[bool] = True
    computed: ClassVar[Computable] = "numbers"

    column: Source
    mean: float = 0.0  # replaces NULL

    @property
    def line(self) -> tuple[float, float] | None:
        return 0.0, 1.0


class Standardize(Column, frozen=True, tag="standardize"):
    """z = (x - mean) / std, with the population deviation; a NULL becomes 0. A std of 0 yields 0.

    With a `limit` it is z / sqrt(1 + (z / limit)²), which stays between -limit and limit, however far an outlier is
    (smooth clipping, Holzmüller et al., 2024, "Better by default"). 0 is no limit.
    """

    hides_null: ClassVar[bool] = True
    computed: ClassVar[Computable] = "numbers"

    column: Source
    mean: float
    std: float
    limit: float = 0.0

    @property
    def moments(self) -> tuple[float, float] | None:
        return self.mean, self.std

    @property
    def line(self) -> tuple[float, float] | None:
        return None if self.limit else self.moments


class Normalize(Column, frozen=True, tag="normalize"):
    """(x - min) / (max - min), not clipped outside; 0 when min equals max."""

    hides_null: ClassVar[bool] = True
    computed: ClassVar[Computable] = "numbers"

    column: Source
    min: float
    max: float
    mean: float

    @property
    def line(self) -> tuple[float, float] | None:
        return self.min, self.max - self.min


class Log(Column, frozen=True, tag="log"):
    """log(1 + x); numbers at or below -1, which have no logarithm, become the mean as NULL does."""

    hides_null: ClassVar[bool] = True
    computed: ClassVar[Computable] = "numbers"

    column: Source
    mean: float  # of x before the logarithm


class Year(Column, frozen=True, tag="year"):
    """(year - mean) / std of a date or timestamp, in UTC; mean and std are the year's. A NULL becomes 0."""

    hides_null: ClassVar[bool] = True

    column: str
    mean: float
    std: float

    @property
    def moments(self) -> tuple[float, float] | None:
        return self.mean, self.std

    @property
    def part(self) -> str:
        return "year"


class IsNull(Column, frozen=True, tag="is_null"):
    """1 for a number or time that is NULL or not finite, else 0."""

    is_indicator: ClassVar[bool] = True
    computed: ClassVar[Computable] = "numbers"

    column: Source

    @property
    def noun(self) -> str:
        return "indicator of NULL"


class PiecewiseLinear(Column, frozen=True, tag="piecewise_linear"):
    """Piecewise-linear encoding (Gorishniy et al., 2022): a value from 0 to 1 for each bin between two `boundaries`.

    It is 1 for the bins below the number, 0 for those above it, and in the bin of the number the fraction of the bin
    that lies below it. A number outside of the boundaries counts as the nearest one. With `nulls`, an additional first
    value is 1 for numbers and 0 for NULL, of which all values are 0; without, a NULL is in the middle of the bins.
    """

    array: ClassVar[Array] = "positions"
    computed: ClassVar[Computable] = "numbers"

    column: Source
    boundaries: tuple[float, ...]
    nulls: bool = False

    @property
    def tells_null(self) -> bool:
        return self.nulls

    @property
    def bins(self) -> int:
        return len(self.boundaries) - 1

    @property
    def width(self) -> int:
        return self.bins + self.nulls


class Periodic(Column, frozen=True, tag="periodic"):
    """Periodic embedding (Gorishniy et al., 2022) of z = (x - mean) / std: as many values as `frequencies`.

    They are ReLU of a linear function, learnt for this number, of sin(2πcz) and cos(2πcz) with each learnt frequency c.
    A NULL becomes 0.
    """

    array: ClassVar[Array] = "periodic"
    hides_null: ClassVar[bool] = True
    computed: ClassVar[Computable] = "numbers"
    stated: ClassVar[tuple[str, ...]] = ("frequencies",)
    needs_label: ClassVar[bool] = True

    column: Source
    mean: float
    std: float
    frequencies: int

    @property
    def width(self) -> int:
        return self.frequencies


class Vector(Column, frozen=True, tag="vector"):
    """Numbers of a cell: of a list, or of a text with `delimiter` between them, as many as `mean` has.

    Each is unchanged, or, with `std`, (x - mean) / std of its position. One that is NULL or not finite becomes the
    mean, and so do all of a cell that is NULL or empty.
    """

    stated: ClassVar[tuple[str, ...]] = ("width",)

    column: str
    mean: tuple[float, ...]
    std: tuple[float, ...] = ()
    delimiter: str = ","

    @property
    def width(self) -> int:
        return len(self.mean)

    @property
    def tree_form(self) -> Self:
        return msgspec.structs.replace(self, std=())


class OneHot(Column, frozen=True, tag="one_hot"):
    """Vector of num_ids values, 1 at the row's id; for a list, the sum of the weights at each of its ids."""

    array: ClassVar[Array] = "ids"
    made_of: ClassVar[str] = "category"

    category: Category

    @property
    def width(self) -> int:
        return num_ids(self.category)


COMBINERS = ("sum", "mean", "sqrtn")
INITIALS = ("uniform", "normal", "zeros")


class Embedding(Column, frozen=True, tag="embedding"):
    """Trained vector of the row's id, `dim` values.

    Neighbouring features with one number of a `table` look their vectors up in the same one, where equal ids have equal
    vectors; 0 is a table of its own.
    """

    array: ClassVar[Array] = "ids"
    made_of: ClassVar[str] = "category"
    needs_label: ClassVar[bool] = True

    category: Category
    dim: int
    combiner: str = "sum"  # for several ids in one row; one of COMBINERS
    initial: str = "uniform"  # initial values; one of INITIALS
    table: int = 0

    @property
    def width(self) -> int:
        return self.dim


class Sequence(Column, frozen=True, tag="sequence"):
    """Ids of a list in their order, for models that read sequences: int64 (rows, length).

    They are 1 + id, the last `length` of a longer list, with 0 behind the ids of a shorter one. vector: numbers for
    each id in a model of ours, where COLUMN says them.
    """

    array: ClassVar[Array] = "sequence"
    made_of: ClassVar[str] = "category"
    stated: ClassVar[tuple[str, ...]] = ("length",)

    category: ListOf | NGrams
    length: int
    vector: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def width(self) -> int:
        return self.length


# Statistics of categories ----------------------------------------------------------------------------------


class TargetMean(Column, frozen=True, tag="target_mean"):
    """Mean label of the training rows with the row's category (target encoding, Micci-Barreca, 2001).

    It is (sum of labels + smoothing * prior) / (rows + smoothing) with the prior, the mean label of all rows. `nulls`:
    so is the value of NULL, and an unseen category without rows has the mean label of the rows that are not NULL; else,
    as in models of earlier versions, both have the prior. Two classes have the share of the second one, k classes the
    shares of all but the last, `outputs` values.

    A training row has the statistics without its own fold, so that its own label is in none of its features; other rows
    have the statistics of all folds. `counts` are the rows, or the sum of their weights, of each id in each of the
    `folds`, shape (folds, ids); `sums` are the sums of the labels, (folds, outputs, ids); both are empty before the
    rows are known. See `edl.features.folds` for the folds of the first `rows` rows, which form `blocks` if a search
    validates on several parts of them. `scaled`: minus the prior, divided by the deviation over the training rows.
    """

    made_of: ClassVar[str] = "category"
    needs_label: ClassVar[bool] = True

    category: Plain
    smoothing: float
    outputs: int = 1
    counts: tuple[float, ...] = ()
    sums: tuple[float, ...] = ()
    folds: int = 0
    rows: int = 0
    blocks: int = 1
    scaled: bool = True
    nulls: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def width(self) -> int:
        return self.outputs

    @property
    def tree_form(self) -> Self:
        return msgspec.structs.replace(self, scaled=False)


class LogCount(Column, frozen=True, tag="log_count"):
    """log(1 + n) of the number n of training rows with the row's category.

    `nulls`: so is the value of NULL, and an unseen category counts as the rarest one; else, as in models of earlier
    versions, both have 0. `counts` are the rows of each id; they are empty before the rows are known. `scaled`: minus
    the mean over the training rows, divided by the deviation.
    """

    made_of: ClassVar[str] = "category"

    category: Plain
    counts: tuple[float, ...] = ()
    scaled: bool = True
    nulls: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def tree_form(self) -> Self:
        return msgspec.structs.replace(self, scaled=False)


class GroupMean(Column, frozen=True, tag="group_mean"):
    """Mean of a number over the training rows with the row's category, or the `difference` of the row's number to it.

    `counts` are the rows with a number of each id, `means` the means of their numbers; both are empty before the rows
    are known. An id without rows has the mean of all numbers, and so has NULL without `nulls`. A difference is missing
    where the number is: NaN for trees, 0 for networks. `scaled`: a mean minus the mean of all numbers, both divided by
    `deviation`, the one of the values over the training rows; 0 without deviation.
    """

    made_of: ClassVar[str] = "category"

    category: Plain
    number: Source  # type: ignore[misc]  # of other features empty
    difference: bool = False
    counts: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    deviation: float = 0.0
    scaled: bool = True
    nulls: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def tree_form(self) -> Self:
        return msgspec.structs.replace(self, scaled=False)


class Codes(Column, frozen=True, tag="codes"):
    """Id of a category as a number, for trees; NaN for NULL."""

    made_of: ClassVar[str] = "category"
    is_for_trees: ClassVar[bool] = True

    category: Plain

    @property
    def is_ordered(self) -> bool:
        return self.category.is_ordered


class Raw(Column, frozen=True, tag="raw"):
    """Number as it is, for trees; NaN for NULL. With `part`, that part of a date or time: January is month 1, Monday
    weekday 1, midnight hour 0.
    """

    is_unchanged: ClassVar[bool] = True
    computed: ClassVar[Computable] = "numbers"
    stated: ClassVar[tuple[str, ...]] = ("part",)
    is_for_trees: ClassVar[bool] = True

    column: Source
    part: Literal["", "year", "month", "day", "weekday", "hour", "minute"] = ""

    @property
    def noun(self) -> str:
        return self.part or "number"


class RawText(Column, frozen=True, tag="raw_text"):
    """Text as it is, for a model of a file. NULL is the text `null`, or missing (None) if that is unset."""

    array: ClassVar[Array] = "texts"
    is_unchanged: ClassVar[bool] = True

    column: str
    null: str | msgspec.UnsetType = msgspec.UNSET


Dense = Numeric | Standardize | Normalize | Log | Year | IsNull | PiecewiseLinear | Periodic | Vector
Encoding = TargetMean | LogCount | GroupMean
TreeFeature = Raw | Codes
Feature = Dense | Encoding | OneHot | Embedding | Sequence | TreeFeature | RawText


def width(feature: Feature) -> int:
    """Return the number of values per row that the feature gives a model."""
    return feature.width


def is_dense(feature: Feature) -> bool:
    """Return True if the feature is computed before the model, which computes others from ids and numbers."""
    if feature.array == "ids":  # lists of one-hot ids are added up
        return category_of(feature).has_lists and not feature.dim
    return feature.array == "dense"


def is_encoding(column: Feature | Category) -> TypeIs[Encoding]:
    return isinstance(column, Encoding)


def embeddings(features: Iterable[Feature]) -> Iterator[Embedding]:
    """Yield the features with trained vectors of ids."""
    return (feature for feature in features if isinstance(feature, Embedding))


def with_tables(features: Iterable[Feature]) -> Iterator[Embedding]:
    """Yield the embeddings, of those that share a table the first one."""
    seen: set[int] = set()
    for feature in embeddings(features):
        if feature.table not in seen:
            seen |= {feature.table} - {0}
            yield feature


def item_of(category: Feature | Category) -> Feature | Category:
    """Return the category of the items of a list, or the category itself."""
    is_list = category.made_of == "category" and is_category(category)
    item: Feature | Category = getattr(category, "category") if is_list else category  # noqa: B009
    return item


def category_of(column: Feature | Category) -> Feature | Category:
    """Return the category that a feature is made of, or the column itself if it is made of none."""
    is_made_of_one = column.made_of == "category" and not is_category(column)
    made_of: Feature | Category = getattr(column, "category") if is_made_of_one else column  # noqa: B009
    return made_of
