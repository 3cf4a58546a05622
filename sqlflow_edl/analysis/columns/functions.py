"""Table of the COLUMN functions: name, aliases, typed parameters, builder.

A builder makes a `Draft`, which names the table columns it reads and the statistics of them it wants; with those,
`fit` makes the typed feature column and its parameters. A new function is a new row.
"""

from __future__ import annotations

from dataclasses import replace

from edl import spec
from edl.errors import did_you_mean
from edl.spec.features import COMBINERS, INITIALS
from sqlflow_edl.analysis.columns import categories, encodings, numeric, reused
from sqlflow_edl.analysis.columns.drafts import Bound, ColumnFunction, Draft, FunctionParameter, Statistics
from sqlflow_edl.analysis.columns.inputs import Fitted, embed


def _embedding(bound: Bound) -> Draft:
    inner: Draft = bound["category"]
    combiner = _word(bound, "combiner", COMBINERS)
    initial = _word(bound, "initializer", INITIALS)
    dim: int | None = bound["dim"]

    def fit(statistics: Statistics) -> Fitted:
        return embed(inner.fit(statistics), dim or 0, combiner, initial, inner.table)  # type: ignore[arg-type]

    return replace(inner, fit=fit, span=bound.span, is_category=False, dim=dim or 0)


def _word(bound: Bound, name: str, choices: tuple[str, ...]) -> str:
    """Return one of the known words, in any case; the first if none is given."""
    word: str = (bound[name] or choices[0]).casefold()
    if word not in choices:
        raise bound.fail(f"unknown {name} {word}", hint=did_you_mean(word, choices))
    return word


def _sequence(bound: Bound) -> Draft:
    inner: Draft = bound["category"]
    length: int = bound["max_length"]

    def fit(statistics: Statistics) -> spec.Sequence:
        category = inner.fit(statistics)
        if category.weights or "sequence" not in category.places:
            what = "has weights" if category.weights else "has one value in each row"
            raise bound.fail(
                f"SEQUENCE takes lists of ids, and {', '.join(inner.columns)} {what}",
                hint='a text of several ids has a delimiter: SEQUENCE(VOCABULARIZE(x, delimiter=","), 20)',
            )
        return spec.Sequence(category, length)  # type: ignore[arg-type]  # of lists

    return replace(inner, fit=fit, span=bound.span, is_category=False)


def _indicator(bound: Bound) -> Draft:
    return categories.one_hot(bound["category"], bound.span)


_X = FunctionParameter("x", "column", ("column", "col_name"))
_CATEGORY = FunctionParameter("category", "category", ("x", "column"))
_GROUP = FunctionParameter("category", "category", ("k", "group", "by"))
_IDS = FunctionParameter("size", "whole", ("bucket_size", "num_buckets"))
_SHAPE = FunctionParameter("shape", "shape", required=False)
_DELIMITER = FunctionParameter("delimiter", "delimiter", required=False)
_DTYPE = FunctionParameter("dtype", "dtype", required=False)

FUNCTIONS = (
    ColumnFunction(
        "NUMERIC",
        "NUMERIC(x), or NUMERIC(x, 4) of cells of 4 numbers",
        (_X, _SHAPE, _DELIMITER, _DTYPE),
        numeric.numbers,
        ("numeric_column",),
        reads=True,
    ),
    ColumnFunction(
        "DENSE",
        'DENSE(x, 4) or DENSE(x, 4, ";")',
        (_X, _SHAPE, _DELIMITER, _DTYPE),
        numeric.dense,
        reads=True,
    ),
    ColumnFunction("STANDARDIZE", "STANDARDIZE(x)", (_X,), numeric.standardize),
    ColumnFunction("NORMALIZE", "NORMALIZE(x)", (_X,), numeric.normalize),
    ColumnFunction("LOG", "LOG(x)", (_X,), numeric.log),
    ColumnFunction(
        "PLE",
        "PLE(x) or PLE(x, 32)",
        (_X, FunctionParameter("bins", "buckets", ("num_bins",), required=False)),
        numeric.piecewise_linear,
        ("PIECEWISE_LINEAR",),
    ),
    ColumnFunction(
        "PERIODIC",
        "PERIODIC(x) or PERIODIC(x, 32)",
        (_X, FunctionParameter("frequencies", "frequencies", ("n",), required=False)),
        numeric.periodic,
    ),
    ColumnFunction("YEAR", "YEAR(x)", (_X,), numeric.year),
    ColumnFunction("MONTH", "MONTH(x)", (_X,), categories.part("month")),
    ColumnFunction("DAY", "DAY(x)", (_X,), categories.part("day"), ("DAYOFMONTH",)),
    ColumnFunction("WEEKDAY", "WEEKDAY(x)", (_X,), categories.part("weekday"), ("DAYOFWEEK",)),
    ColumnFunction("HOUR", "HOUR(x)", (_X,), categories.part("hour")),
    ColumnFunction("MINUTE", "MINUTE(x)", (_X,), categories.part("minute")),
    ColumnFunction(
        "BUCKET",
        "BUCKET(x, [10, 20.5])",
        (_X, FunctionParameter("boundaries", "numbers")),
        categories.bucket,
        ("bucketized_column",),
    ),
    ColumnFunction(
        "BUCKETIZE",
        "BUCKETIZE(x, 5) or BUCKETIZE(x, boundaries=[10, 20.5])",
        (
            _X,
            FunctionParameter("num_buckets", "buckets", required=False),
            FunctionParameter("boundaries", "numbers", required=False),
        ),
        categories.bucketize,
    ),
    ColumnFunction(
        "CATEGORY_ID",
        "CATEGORY_ID(x, 100)",
        (_X, _IDS, _DELIMITER),
        categories.category_id,
        ("categorical_column_with_identity",),
    ),
    ColumnFunction(
        "SEQ_CATEGORY_ID",
        'SEQ_CATEGORY_ID(x, 100) or SEQ_CATEGORY_ID(x, 100, delimiter="|")',
        (_X, _IDS, _DELIMITER),
        categories.seq_category_id,
        ("sequence_categorical_column_with_identity",),
    ),
    ColumnFunction(
        "SPARSE",
        'SPARSE(x, 1000), or SPARSE(x, 1000, ",", kv_delimiter=":") of ids with weights',
        (
            _X,
            FunctionParameter("shape", "shape", ("size",), required=False),
            _DELIMITER,
            _DTYPE,
            FunctionParameter("kv_delimiter", "delimiter", required=False),
            FunctionParameter("key_dtype", "dtype", required=False),
        ),
        categories.sparse,
        reads=True,
    ),
    ColumnFunction(
        "CATEGORY_HASH",
        "CATEGORY_HASH(x, 1000)",
        (
            _X,
            FunctionParameter("size", "whole", ("hash_bucket_size", "bucket_size"), required=False),
            _DELIMITER,
        ),
        categories.category_hash,
        ("HASH", "HASH_BUCKET", "categorical_column_with_hash_bucket"),
    ),
    ColumnFunction(
        "VOCABULARIZE",
        "VOCABULARIZE(x, max_size=1000, min_count=2)",
        (
            _X,
            FunctionParameter("max_size", "whole", required=False),
            FunctionParameter("min_count", "whole", required=False),
            _DELIMITER,
        ),
        categories.vocabularize,
        ("VOCABULARY", "categorical_column_with_vocabulary_list"),
    ),
    ColumnFunction(
        "NGRAMS",
        "NGRAMS(x, 3, 4096)",
        (
            _X,
            FunctionParameter("n", "characters", required=False),
            FunctionParameter("size", "buckets", ("num_buckets",), required=False),
        ),
        categories.ngrams,
    ),
    ColumnFunction(
        "CROSS",
        "CROSS([a, BUCKETIZE(b, 10)], 1000)",
        (
            FunctionParameter("columns", "crossed", ("keys",)),
            FunctionParameter("size", "whole", ("hash_bucket_size",)),
        ),
        categories.cross,
        ("crossed_column",),
    ),
    ColumnFunction(
        "WEIGHTED_CATEGORY",
        'WEIGHTED_CATEGORY(SPARSE(x, 1000, ",", kv_delimiter=":"))',
        (_CATEGORY,),
        categories.require_weights,
        ("weighted_categorical_column",),
    ),
    ColumnFunction(
        "CONCAT",
        "CONCAT(a, b)",
        (FunctionParameter("categories", "categories"),),
        categories.concat,
        variadic=True,
    ),
    ColumnFunction(
        "TARGET_ENCODE",
        "TARGET_ENCODE(x) or TARGET_ENCODE(x, smoothing=20)",
        (_CATEGORY, FunctionParameter("smoothing", "whole", required=False)),
        encodings.target_encode,
        ("TARGET_ENCODING", "TARGET_ENCODER"),
    ),
    ColumnFunction(
        "COUNT_ENCODE",
        "COUNT_ENCODE(x)",
        (_CATEGORY,),
        encodings.count_encode,
        ("COUNT_ENCODING", "FREQUENCY_ENCODE"),
    ),
    ColumnFunction(
        "GROUP_MEAN", "GROUP_MEAN(x, k)", (_X, _GROUP), encodings.group_mean, ("GROUP_AVG", "GROUP_AVERAGE")
    ),
    ColumnFunction(
        "GROUP_DIFFERENCE",
        "GROUP_DIFFERENCE(x, k)",
        (_X, _GROUP),
        encodings.group_difference,
        ("GROUP_DIFF",),
    ),
    ColumnFunction(
        "EMBEDDING",
        "EMBEDDING(x, 8), or EMBEDDING([x, y], 8) of columns that share vectors",
        (
            FunctionParameter("category", "embedded", ("x", "column", "categories")),
            FunctionParameter("dim", "whole", ("dimension", "size"), required=False),
            FunctionParameter("combiner", "text", required=False),
            FunctionParameter("initializer", "text", ("initial",), required=False),
        ),
        _embedding,
        ("embedding_column", "shared_embedding_columns"),
    ),
    ColumnFunction(
        "SEQUENCE",
        "SEQUENCE(x, 20) or SEQUENCE(SPARSE(x, 1000), 20)",
        (_CATEGORY, FunctionParameter("max_length", "buckets", ("length",))),
        _sequence,
    ),
    ColumnFunction(
        "FEATURES",
        "FEATURES(m), FEATURES('m@2'), or FEATURES(m, [x, y]): features of m as it was fitted",
        (FunctionParameter("model", "text"), FunctionParameter("columns", "names", required=False)),
        reused.item_only,
    ),
    ColumnFunction(
        "INDICATOR",
        "INDICATOR(x) or INDICATOR(VOCABULARIZE(x))",
        (_CATEGORY,),
        _indicator,
        ("ONE_HOT", "indicator_column"),
    ),
)
BY_NAME = {name.casefold(): f for f in FUNCTIONS for name in (f.name, *f.aliases)}
