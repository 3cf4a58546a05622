"""The functions of the COLUMN language, each a row of one table: name, aliases, typed parameters, builder.

A builder makes a `Draft`: it knows which table columns it reads and which statistics of them it wants, and once
those are there, `fit` makes the typed feature column with its parameters. A new function is a new row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from edl import spec
from edl.errors import SemanticError, Span, did_you_mean
from edl.spec.features import LIST_TYPES
from sqlflow_edl.analysis import numeric
from sqlflow_edl.analysis.drafts import Bound, Draft, Fitted, Function, Parameter, Statistics
from sqlflow_edl.analysis.schema import ColumnType
from sqlflow_edl.analysis.statistics import Want

# The builders, a function of the language each -----------------------------------------------------------


def date_part(column: str, part: spec.Part, span: Span | None = None, why: str = "") -> Draft:
    def fit(_: Statistics) -> spec.DatePart:
        return spec.DatePart(column, part)

    return Draft((column,), Want.CALENDAR, fit, span, is_category=True, why=why, part=part)


def vocabulary(
    column: str, span: Span | None = None, *, max_size: int | None = None, min_count: int = 1, why: str = ""
) -> Draft:
    def fit(statistics: Statistics) -> spec.Vocabulary:
        counts = statistics[column].counts
        if counts is None:
            raise SemanticError(
                f"{column} has more than {statistics[column].distinct:,} different values, too many for a vocabulary",
                span=span,
                hint=f"write CATEGORY_HASH({column}, 100000), or keep the frequent ones with max_size=",
            )
        values = counts.vocabulary(max_size=max_size, min_count=min_count)
        if not values:
            often = "" if min_count == 1 else f" that occurs {min_count:,} times"
            raise SemanticError(
                f"{column} has no value{often} in the training rows", span=span, hint="leave it out"
            )
        return spec.Vocabulary(column, values)

    return Draft((column,), Want.COUNTS, fit, span, is_category=True, why=why)


def hashed(column: str, size: int | None, span: Span | None = None, why: str = "") -> Draft:
    """Three buckets per distinct value by default: with one, two values in five would share a bucket."""

    def fit(statistics: Statistics) -> spec.HashBucket:
        return spec.HashBucket(column, size or max(10, 3 * statistics[column].distinct))

    return Draft((column,), Want.COUNTS, fit, span, is_category=True, why=why)


def text_category(column: str, span: Span | None, *, why: str = "", largest: int = 10_000) -> Draft:
    """A vocabulary while the values are few, hashed when they are many."""
    known = vocabulary(column, span)

    def fit(statistics: Statistics) -> Fitted:
        if statistics[column].distinct <= largest:
            return known.fit(statistics)
        return spec.HashBucket(column, min(1_000_000, 3 * statistics[column].distinct))

    return Draft((column,), Want.COUNTS, fit, span, is_category=True, why=why)


def _part(part: spec.Part) -> Callable[[Bound], Draft]:
    return lambda bound: date_part(bound.temporal_column(part), part, bound.span)


def _bucket(bound: Bound) -> Draft:
    column = bound.numeric_column()
    boundaries: tuple[float, ...] = bound["boundaries"]
    if any(low >= high for low, high in itertools.pairwise(boundaries)):
        raise bound.fail("boundaries must rise strictly", hint=f"sorted: {sorted(set(boundaries))}")
    return Draft(
        (column,), Want.NONE, lambda _: spec.Bucket(column, boundaries), bound.span, is_category=True
    )


def _bucketize(bound: Bound) -> Draft:
    column = bound.column
    count, boundaries = bound["num_buckets"], bound["boundaries"]
    if (count is None) == (boundaries is None):
        raise bound.fail("BUCKETIZE needs either a number of buckets or their boundaries")
    if boundaries is not None:
        return _bucket(bound)
    if bound.schema.type(column) is ColumnType.TEXT:
        return hashed(column, count, bound.span)
    column = bound.numeric_column(times=True)

    def fit(statistics: Statistics) -> spec.Bucket:
        cuts = statistics[column].quantiles([i / count for i in range(1, count)])
        return spec.Bucket(column, tuple(sorted(set(cuts))))  # equal quantiles: fewer, wider buckets

    return Draft((column,), Want.QUANTILES, fit, bound.span, is_category=True)


def _category_id(bound: Bound) -> Draft:
    column = bound.numeric_column()
    size: int = bound["size"]

    def fit(statistics: Statistics) -> spec.CategoryId:
        numbers = statistics[column]
        if not numbers.integers or numbers.min < 0 or numbers.max >= size:
            found = f"{numbers.min:g} to {numbers.max:g}" + ("" if numbers.integers else ", not all whole")
            raise SemanticError(
                f"CATEGORY_ID({column}, {size}) needs whole numbers from 0 to {size - 1}; the data holds {found}",
                span=bound.span,
                hint=f"write CATEGORY_ID({column}, {int(numbers.max) + 1})"
                if numbers.integers and numbers.min >= 0
                else f"write VOCABULARIZE({column}) or CATEGORY_HASH({column}, size)",
            )
        return spec.CategoryId(column, size)

    return Draft((column,), Want.MOMENTS, fit, bound.span, is_category=True)


def _seq_category_id(bound: Bound) -> Draft:
    """No statistics: ids that are not in the range are unseen, as in prediction."""
    column, size, delimiter = bound.column, bound["size"], bound["delimiter"] or ","
    if not (bound.schema.type(column) is ColumnType.TEXT or bound.schema.is_list_of_integers(column)):
        raise bound.fail(f"SEQ_CATEGORY_ID needs lists of whole numbers, or texts of them; {column} has none")
    return Draft(
        (column,),
        Want.NONE,
        lambda _: spec.CategoryIds(column, size, delimiter),
        bound.span,
        is_category=True,
    )


def _category_hash(bound: Bound) -> Draft:
    bound.schema.require_category(bound.column, bound.span)
    return hashed(bound.column, bound["size"], bound.span)


def _vocabularize(bound: Bound) -> Draft:
    bound.schema.require_category(bound.column, bound.span)
    return vocabulary(bound.column, bound.span, max_size=bound["max_size"], min_count=bound["min_count"] or 1)


def _cross(bound: Bound) -> Draft:
    columns: tuple[str, ...] = bound["columns"]
    if len(columns) < 2:
        raise bound.fail("CROSS needs two columns or more")
    for column in columns:
        bound.schema.require_category(column, bound.span)
    size: int = bound["size"]
    return Draft(columns, Want.NONE, lambda _: spec.Cross(columns, size), bound.span, is_category=True)


def _embedding(bound: Bound) -> Draft:
    inner: Draft = bound["category"]
    combiner = (bound["combiner"] or "sum").casefold()
    if combiner not in ("sum", "mean", "sqrtn"):
        raise bound.fail(
            f"unknown combiner {combiner}", hint=did_you_mean(combiner, ("sum", "mean", "sqrtn"))
        )
    if bound["initializer"] is not None:
        raise bound.fail("EMBEDDING's initializer cannot be chosen yet", hint="leave it out")
    dim: int | None = bound["dim"]

    def fit(statistics: Statistics) -> spec.Embedding:
        category = inner.fit(statistics)
        return spec.Embedding(category, dim or embedding_dim(spec.num_ids(category)), combiner)  # type: ignore[arg-type]

    return Draft(inner.columns, inner.wants, fit, bound.span)


def _one_hot(bound: Bound) -> Draft:
    inner: Draft = bound["category"]

    def fit(statistics: Statistics) -> spec.OneHot:
        category = inner.fit(statistics)
        if isinstance(category, LIST_TYPES):
            raise bound.fail("INDICATOR takes one id of each row, and this is a list", "write EMBEDDING(…)")
        return spec.OneHot(category)  # type: ignore[arg-type]

    return Draft(inner.columns, inner.wants, fit, bound.span)


def embedding_dim(ids: int) -> int:
    """A power of two near ids ** 0.4, from 4 to 64: 16 for a thousand ids."""
    return min(64, max(4, 1 << math.ceil(0.4 * math.log2(max(2, ids)))))


_X = Parameter("x", "column", ("column", "col_name"))
_CATEGORY = Parameter("category", "category", ("x", "column"))
_SHAPE = Parameter("shape", "shape", required=False)
_DELIMITER = Parameter("delimiter", "delimiter", required=False)
_DTYPE = Parameter("dtype", "dtype", required=False)

FUNCTIONS = (
    Function("NUMERIC", "NUMERIC(x), or NUMERIC(x, 4) of cells of 4 numbers", (_X, _SHAPE, _DELIMITER, _DTYPE),
             numeric.numbers, ("numeric_column",), reads=True),
    Function("DENSE", 'DENSE(x, 4) or DENSE(x, 4, ";")', (_X, _SHAPE, _DELIMITER, _DTYPE), numeric.dense, reads=True),
    Function("STANDARDIZE", "STANDARDIZE(x)", (_X,), numeric.standardize),
    Function("NORMALIZE", "NORMALIZE(x)", (_X,), numeric.normalize),
    Function("LOG", "LOG(x)", (_X,), numeric.log),
    Function("YEAR", "YEAR(x)", (_X,), numeric.year),
    Function("MONTH", "MONTH(x)", (_X,), _part("month")),
    Function("DAY", "DAY(x)", (_X,), _part("day"), ("DAYOFMONTH",)),
    Function("WEEKDAY", "WEEKDAY(x)", (_X,), _part("weekday"), ("DAYOFWEEK",)),
    Function("HOUR", "HOUR(x)", (_X,), _part("hour")),
    Function("MINUTE", "MINUTE(x)", (_X,), _part("minute")),
    Function("BUCKET", "BUCKET(x, [10, 20.5])", (_X, Parameter("boundaries", "numbers")), _bucket,
             ("bucketized_column",)),
    Function("BUCKETIZE", "BUCKETIZE(x, 5) or BUCKETIZE(x, boundaries=[10, 20.5])",
             (_X, Parameter("num_buckets", "buckets", required=False),
              Parameter("boundaries", "numbers", required=False)), _bucketize),
    Function("CATEGORY_ID", "CATEGORY_ID(x, size)", (_X, Parameter("size", "whole", ("bucket_size", "num_buckets"))),
             _category_id, ("categorical_column_with_identity",)),
    Function("SEQ_CATEGORY_ID", 'SEQ_CATEGORY_ID(x, size) or SEQ_CATEGORY_ID(x, size, delimiter="|")',
             (_X, Parameter("size", "whole", ("bucket_size", "num_buckets")),
              _DELIMITER), _seq_category_id,
             ("sequence_categorical_column_with_identity",)),
    Function("CATEGORY_HASH", "CATEGORY_HASH(x, size)",
             (_X, Parameter("size", "whole", ("hash_bucket_size", "bucket_size"), required=False)), _category_hash,
             ("HASH", "HASH_BUCKET", "categorical_column_with_hash_bucket")),
    Function("VOCABULARIZE", "VOCABULARIZE(x, max_size=1000, min_count=2)",
             (_X, Parameter("max_size", "whole", required=False), Parameter("min_count", "whole", required=False)),
             _vocabularize, ("VOCABULARY", "categorical_column_with_vocabulary_list")),
    Function("CROSS", "CROSS([a, b], size)",
             (Parameter("columns", "columns", ("keys",)), Parameter("size", "whole", ("hash_bucket_size",))), _cross,
             ("crossed_column",)),
    Function("EMBEDDING", "EMBEDDING(x, dim) or EMBEDDING(VOCABULARIZE(x), dim)",
             (_CATEGORY, Parameter("dim", "whole", ("dimension", "size"), required=False),
              Parameter("combiner", "text", required=False), Parameter("initializer", "scalar", required=False)),
             _embedding, ("embedding_column",)),
    Function("INDICATOR", "INDICATOR(x) or INDICATOR(VOCABULARIZE(x))", (_CATEGORY,), _one_hot,
             ("ONE_HOT", "indicator_column")),
)  # fmt: skip
PLANNED = ("SPARSE", "WEIGHTED_CATEGORY", "CONCAT", "COMBINE")

BY_NAME = {name.casefold(): f for f in FUNCTIONS for name in (f.name, *f.aliases)}
