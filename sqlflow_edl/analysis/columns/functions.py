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
from sqlflow_edl.analysis.columns.drafts import Bound, Draft, Function, Parameter, Statistics
from sqlflow_edl.analysis.columns.inputs import embedding_dim


def _embedding(bound: Bound) -> Draft:
    inner: Draft = bound["category"]
    combiner = _word(bound, "combiner", COMBINERS)
    initial = _word(bound, "initializer", INITIALS)
    dim: int | None = bound["dim"]

    def fit(statistics: Statistics) -> spec.Embedding:
        category = inner.fit(statistics)
        width = dim or embedding_dim(spec.num_ids(category))  # type: ignore[arg-type]
        return spec.Embedding(category, width, combiner, initial, inner.table)  # type: ignore[arg-type]

    return replace(inner, fit=fit, span=bound.span, is_category=False, dim=dim or 0)


def _word(bound: Bound, name: str, known: tuple[str, ...]) -> str:
    """Return one of the known words, in any case; the first if none is given."""
    word: str = (bound[name] or known[0]).casefold()
    if word not in known:
        raise bound.fail(f"unknown {name} {word}", hint=did_you_mean(word, known))
    return word


def _sequence(bound: Bound) -> Draft:
    inner: Draft = bound["category"]
    length: int = bound["max_length"]

    def fit(statistics: Statistics) -> spec.Sequence:
        category = inner.fit(statistics)
        weighted = isinstance(category, spec.ListOf) and category.weights
        if weighted or not isinstance(category, spec.ListOf | spec.NGrams):
            what = "has weights" if weighted else "has one value in each row"
            raise bound.fail(
                f"SEQUENCE takes lists of ids, and {', '.join(inner.columns)} {what}",
                hint='a text of several ids has a delimiter: SEQUENCE(VOCABULARIZE(x, delimiter=","), 20)',
            )
        return spec.Sequence(category, length)

    return replace(inner, fit=fit, span=bound.span, is_category=False)


def _indicator(bound: Bound) -> Draft:
    return categories.one_hot(bound["category"], bound.span)


_X = Parameter("x", "column", ("column", "col_name"))
_CATEGORY = Parameter("category", "category", ("x", "column"))
_IDS = Parameter("size", "whole", ("bucket_size", "num_buckets"))
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
    Function("PLE", "PLE(x) or PLE(x, 32)", (_X, Parameter("bins", "buckets", ("num_bins",), required=False)),
             numeric.piecewise_linear, ("PIECEWISE_LINEAR",)),
    Function("PERIODIC", "PERIODIC(x) or PERIODIC(x, 32)",
             (_X, Parameter("frequencies", "frequencies", ("n",), required=False)), numeric.periodic),
    Function("YEAR", "YEAR(x)", (_X,), numeric.year),
    Function("MONTH", "MONTH(x)", (_X,), categories.part("month")),
    Function("DAY", "DAY(x)", (_X,), categories.part("day"), ("DAYOFMONTH",)),
    Function("WEEKDAY", "WEEKDAY(x)", (_X,), categories.part("weekday"), ("DAYOFWEEK",)),
    Function("HOUR", "HOUR(x)", (_X,), categories.part("hour")),
    Function("MINUTE", "MINUTE(x)", (_X,), categories.part("minute")),
    Function("BUCKET", "BUCKET(x, [10, 20.5])", (_X, Parameter("boundaries", "numbers")), categories.bucket,
             ("bucketized_column",)),
    Function("BUCKETIZE", "BUCKETIZE(x, 5) or BUCKETIZE(x, boundaries=[10, 20.5])",
             (_X, Parameter("num_buckets", "buckets", required=False),
              Parameter("boundaries", "numbers", required=False)), categories.bucketize),
    Function("CATEGORY_ID", "CATEGORY_ID(x, 100)", (_X, _IDS, _DELIMITER), categories.category_id,
             ("categorical_column_with_identity",)),
    Function("SEQ_CATEGORY_ID", 'SEQ_CATEGORY_ID(x, 100) or SEQ_CATEGORY_ID(x, 100, delimiter="|")',
             (_X, _IDS, _DELIMITER), categories.seq_category_id, ("sequence_categorical_column_with_identity",)),
    Function("SPARSE", 'SPARSE(x, 1000), or SPARSE(x, 1000, ",", kv_delimiter=":") of ids with weights',
             (_X, Parameter("shape", "shape", ("size",), required=False), _DELIMITER, _DTYPE,
              Parameter("kv_delimiter", "delimiter", required=False), Parameter("key_dtype", "dtype", required=False)),
             categories.sparse, reads=True),
    Function("CATEGORY_HASH", "CATEGORY_HASH(x, 1000)",
             (_X, Parameter("size", "whole", ("hash_bucket_size", "bucket_size"), required=False), _DELIMITER),
             categories.category_hash, ("HASH", "HASH_BUCKET", "categorical_column_with_hash_bucket")),
    Function("VOCABULARIZE", "VOCABULARIZE(x, max_size=1000, min_count=2)",
             (_X, Parameter("max_size", "whole", required=False), Parameter("min_count", "whole", required=False),
              _DELIMITER), categories.vocabularize, ("VOCABULARY", "categorical_column_with_vocabulary_list")),
    Function("NGRAMS", "NGRAMS(x, 3, 4096)",
             (_X, Parameter("n", "characters", required=False),
              Parameter("size", "buckets", ("num_buckets",), required=False)), categories.ngrams),
    Function("CROSS", "CROSS([a, BUCKETIZE(b, 10)], 1000)",
             (Parameter("columns", "crossed", ("keys",)), Parameter("size", "whole", ("hash_bucket_size",))),
             categories.cross, ("crossed_column",)),
    Function("WEIGHTED_CATEGORY", 'WEIGHTED_CATEGORY(SPARSE(x, 1000, ",", kv_delimiter=":"))', (_CATEGORY,),
             categories.weighted, ("weighted_categorical_column",)),
    Function("CONCAT", "CONCAT(a, b)", (Parameter("categories", "categories"),), categories.concat, variadic=True),
    Function("TARGET_ENCODE", "TARGET_ENCODE(x) or TARGET_ENCODE(x, smoothing=20)",
             (_CATEGORY, Parameter("smoothing", "whole", required=False)), encodings.target_encode,
             ("TARGET_ENCODING", "TARGET_ENCODER")),
    Function("COUNT_ENCODE", "COUNT_ENCODE(x)", (_CATEGORY,), encodings.count_encode,
             ("COUNT_ENCODING", "FREQUENCY_ENCODE")),
    Function("EMBEDDING", "EMBEDDING(x, 8), or EMBEDDING([x, y], 8) of columns that share vectors",
             (Parameter("category", "embedded", ("x", "column", "categories")),
              Parameter("dim", "whole", ("dimension", "size"), required=False),
              Parameter("combiner", "text", required=False),
              Parameter("initializer", "text", ("initial",), required=False)),
             _embedding, ("embedding_column", "shared_embedding_columns")),
    Function("SEQUENCE", "SEQUENCE(x, 20) or SEQUENCE(SPARSE(x, 1000), 20)",
             (_CATEGORY, Parameter("max_length", "buckets", ("length",))), _sequence),
    Function("FEATURES", "FEATURES(m), FEATURES('m@2'), or FEATURES(m, [x, y]): features of m as it was fitted",
             (Parameter("model", "text"), Parameter("columns", "names", required=False)), reused.item_only),
    Function("INDICATOR", "INDICATOR(x) or INDICATOR(VOCABULARIZE(x))", (_CATEGORY,), _indicator,
             ("ONE_HOT", "indicator_column")),
)  # fmt: skip
BY_NAME = {name.casefold(): f for f in FUNCTIONS for name in (f.name, *f.aliases)}
