"""Features of a JobSpec as expressions of `edl.features`, and the files of lists that are too long for the page."""

from __future__ import annotations

import json

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
    Function,
    HashBucket,
    JobSpec,
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
    Source,
    Standardize,
    TargetMean,
    Vector,
    Vocabulary,
    Year,
)
from sqlflow_edl.codegen import forecasts
from sqlflow_edl.codegen.source import CallExpression, Expression, Items, line, literal

LONGEST_INLINE = 20  # entries of a vocabulary or boundaries that stay on the page


def features(spec: JobSpec, stored: dict[str, bytes]) -> Expression:
    """Return `fc.Features(…)`, or with several inputs `fc.Inputs(wide=fc.Features(…), deep=fc.Features(…))`."""
    several = len(spec.inputs) > 1
    inputs = tuple(
        (name, _columns(features, f"{name}_" if several else "", stored))
        for name, features in spec.inputs.items()
    )
    return CallExpression("fc.Inputs", inputs) if several else inputs[0][1]


def _columns(features: tuple[Feature, ...], prefix: str, stored: dict[str, bytes]) -> Expression:
    calls = (_feature(feature, f"{prefix}f{i}", stored) for i, feature in enumerate(features))
    return forecasts.lags(features) or CallExpression("fc.Features", tuple(calls))


def _feature(feature: Feature, name: str, stored: dict[str, bytes]) -> Expression:
    if isinstance(feature, OneHot):
        return CallExpression("fc.one_hot", (_category(feature.category, name, stored),))
    if isinstance(feature, Embedding):
        chosen = [("combiner", feature.combiner, "sum"), ("initial", feature.initial, "uniform")]
        more = [(key, literal(value)) for key, value, default in chosen if value != default]
        more += [("table", literal(feature.table))] if feature.table else []
        category = _category(feature.category, name, stored)
        return CallExpression("fc.embedding", (category, ("dim", literal(feature.dim)), *more))
    if isinstance(feature, Sequence):
        length = ("length", literal(feature.length))
        return CallExpression("fc.sequence", (_category(feature.category, name, stored), length))
    if isinstance(feature, Vector):
        return _vector(feature, name, stored)
    if isinstance(feature, PiecewiseLinear):
        nulls = (("nulls", "True"),) if feature.nulls else ()
        bins = _format_list(feature.boundaries, name, stored)
        return CallExpression("fc.piecewise_linear", (_source(feature.column), bins, *nulls))
    if isinstance(feature, TargetMean | LogCount):
        return _statistics(feature, name, stored)
    if isinstance(feature, Codes):
        return CallExpression("fc.codes", (_category(feature.category, name, stored),))
    if isinstance(feature, Raw):
        part = (("part", literal(feature.part)),) if feature.part else ()
        return CallExpression("fc.raw", (_source(feature.column), *part))
    fields = {
        Numeric: ("mean",),
        Standardize: ("mean", "std"),
        Normalize: ("min", "max", "mean"),
        Log: ("mean",),
        Year: ("mean", "std"),
        Periodic: ("mean", "std", "frequencies"),
    }
    function = type(feature).__struct_config__.tag
    values = [(field, literal(getattr(feature, field))) for field in fields[type(feature)]]
    if isinstance(feature, Standardize) and feature.limit:
        values.append(("limit", literal(feature.limit)))
    return CallExpression(f"fc.{function}", (_source(feature.column), *values))


def _source(source: Source | float) -> Expression:
    """Return the name of a column, a number, or `fc.computed(…)`."""
    if not isinstance(source, Computed):
        return literal(source)
    more: list[tuple[str, Expression]] = [("path", literal(source.path))] if source.path else []
    if source.function is not None:
        more.append(("function", _function(source.function)))
    return CallExpression("fc.computed", (literal(source.operator), *map(_source, source.operands), *more))


def _function(function: Function) -> Expression:
    """Return `fc.function(…)`, a function of a user's own."""
    params = ", ".join(f"{literal(name)}: {literal(value)}" for name, value in function.params)
    params_argument = (("params", f"{{{params}}}"),) if params else ()
    named = (("columns", Items(tuple(map(literal, function.columns)))),) if function.columns else ()
    state = ("state", literal(function.state))
    return CallExpression(
        "fc.function", (literal(function.name), literal(function.digest), *params_argument, state, *named)
    )


def _vector(feature: Vector, name: str, stored: dict[str, bytes]) -> Expression:
    mean = ("mean", _format_list(feature.mean, f"{name}_mean", stored))
    std = (("std", _format_list(feature.std, f"{name}_std", stored)),) if feature.std else ()
    return CallExpression("fc.vector", (literal(feature.column), mean, *std, *_delimiter(feature.delimiter)))


def _statistics(feature: TargetMean | LogCount, name: str, stored: dict[str, bytes]) -> Expression:
    """Return `fc.target_mean(…)` or `fc.log_count(…)`, with the statistics that it has."""
    values: list[tuple[str, Expression]] = []
    if isinstance(feature, TargetMean):
        values.append(("smoothing", literal(feature.smoothing)))
        if feature.outputs > 1:
            values.append(("outputs", literal(feature.outputs)))
    if feature.counts:
        values.append(("counts", _format_list(feature.counts, f"{name}_counts", stored)))
    if isinstance(feature, TargetMean) and feature.counts:
        values.append(("sums", _format_list(feature.sums, f"{name}_sums", stored)))
        values += [("folds", literal(feature.folds)), ("rows", literal(feature.rows))]
        if feature.blocks > 1:
            values.append(("blocks", literal(feature.blocks)))
    if not feature.scaled:
        values.append(("scaled", "False"))
    function = type(feature).__struct_config__.tag
    return CallExpression(f"fc.{function}", (_category(feature.category, name, stored), *values))


def _delimiter(delimiter: str) -> tuple[tuple[str, str], ...]:
    return () if delimiter == "," else (("delimiter", literal(delimiter)),)


def _category(category: Category, name: str, stored: dict[str, bytes]) -> Expression:
    match category:
        case Bucket(column, boundaries):
            return CallExpression("fc.bucket", (_source(column), _format_list(boundaries, name, stored)))
        case Vocabulary(column, values):
            return CallExpression("fc.vocabulary", (_source(column), _format_list(values, name, stored)))
        case HashBucket(column, size):
            return CallExpression("fc.hash_bucket", (_source(column), literal(size)))
        case CategoryId(column, size):
            return CallExpression("fc.category_id", (_source(column), literal(size)))
        case ListOf(items, delimiter, weights):
            weighted = (("weights", literal(weights)),) if weights else ()
            return CallExpression(
                "fc.list_of", (_category(items, name, stored), *_delimiter(delimiter), *weighted)
            )
        case NGrams(column, n, size):
            return CallExpression("fc.ngrams", (_source(column), literal(n), literal(size)))
        case Concat(categories):
            parts = (_category(inner, f"{name}_{i}", stored) for i, inner in enumerate(categories))
            return CallExpression("fc.concat", tuple(parts))
        case DatePart(column, part):
            return CallExpression(f"fc.{part}", (literal(column),))
        case Cross(columns, size):
            crossed = (
                literal(inner) if isinstance(inner, str) else line(_category(inner, f"{name}_{i}", stored))
                for i, inner in enumerate(columns)
            )
            return CallExpression("fc.cross", (Items(tuple(crossed)), literal(size)))


def _format_list(
    values: tuple[float, ...] | tuple[str | int, ...], name: str, stored: dict[str, bytes]
) -> Expression:
    if len(values) <= LONGEST_INLINE:
        return Items(tuple(map(literal, values)))
    content = json.dumps(values, ensure_ascii=True, indent=0).encode() + b"\n"
    path = next((path for path, same in stored.items() if same == content), f"vocabulary/{name}.json")
    stored[path] = content
    return f'fc.stored(STORED / "{path.removeprefix("vocabulary/")}")'
