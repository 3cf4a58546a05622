"""Features and series of a JobSpec as expressions, and the files of lists that are too long for the page."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from edl.spec import Category, Computed, Feature, Function, JobSpec, Source, is_category, parts_of, sources
from edl.spec.forecast import LAG, PREFIX
from sqlflow_edl.codegen.source import CallExpression, Expression, Items, layout, line, literal

_POSITIONAL = {"boundaries", "values", "n", "size"}  # other arguments have their name
_ALWAYS = {"mean"}  # written even if it is the default
LONGEST_INLINE = 20  # entries of a vocabulary or boundaries that stay on the page


Reason = Callable[[Feature], str]  # of a feature, empty if none is known


def features(
    inputs: Mapping[str, tuple[Feature, ...]], stored: dict[str, bytes], reason: Reason | None = None
) -> Expression:
    """Return `fc.Features(…)`, or with several inputs `fc.Inputs(wide=fc.Features(…), deep=fc.Features(…))`.

    Each feature has its reason as a comment.
    """
    several = len(inputs) > 1
    expressions = tuple(
        (name, _columns(features, f"{name}_" if several else "", stored, reason))
        for name, features in inputs.items()
    )
    return CallExpression("fc.Inputs", expressions) if several else expressions[0][1]


def _columns(
    features: tuple[Feature, ...], prefix: str, stored: dict[str, bytes], reason: Reason | None
) -> Expression:
    if lags := _lags(features):
        return lags
    calls = (_call(feature, f"{prefix}f{i}", stored) for i, feature in enumerate(features))
    remarks = () if reason is None else tuple(map(reason, features))
    return CallExpression("fc.Features", tuple(calls), remarks)


@functools.cache
def _fields(kind: type[Feature | Category]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of a kind of column. msgspec evaluates their annotations each time."""
    return msgspec.structs.fields(kind)


def _call(column: Feature | Category, name: str, stored: dict[str, bytes]) -> Expression:
    """Return the call of the constructor in `edl.features`, without arguments that have their default.

    name: of the file of a list that is too long for the page.
    """
    arguments: list[Expression | tuple[str, Expression]] = []
    for field in _fields(type(column)):
        value = getattr(column, field.name)
        if field.name == column.made_of:
            arguments += _parts(column, name, stored)
        elif is_category(column) and column.part:
            continue  # it is the name of the function
        elif field.name in _POSITIONAL:
            arguments.append(_argument(value, name, stored))
        elif field.name in _ALWAYS or value != field.default:
            arguments.append((field.name, _argument(value, f"{name}_{field.name}", stored)))
    return CallExpression(f"fc.{column.function}", tuple(arguments))


def _parts(column: Feature | Category, name: str, stored: dict[str, bytes]) -> list[Expression]:
    """Return the arguments for the columns or the categories that the column is made of."""
    parts = parts_of(column)
    names = (
        [f"{name}_{i}" for i in range(len(parts))] if column.made_of in ("columns", "categories") else [name]
    )
    calls = [
        _call(part, inner, stored) if is_category(part) else _source(part)  # type: ignore[arg-type]
        for part, inner in zip(parts, names, strict=True)
    ]
    return [Items(tuple(map(line, calls)))] if column.made_of == "columns" else calls


def _argument(value: Any, name: str, stored: dict[str, bytes]) -> Expression:
    return _format_list(value, name, stored) if isinstance(value, tuple) else _source(value)


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


def _format_list(
    values: tuple[float, ...] | tuple[str | int, ...], name: str, stored: dict[str, bytes]
) -> Expression:
    if len(values) <= LONGEST_INLINE:
        return Items(tuple(map(literal, values)))
    content = json.dumps(values, ensure_ascii=True, indent=0).encode() + b"\n"
    path = next((path for path, same in stored.items() if same == content), f"vocabulary/{name}.json")
    stored[path] = content
    return f'fc.stored(STORED / "{path.removeprefix("vocabulary/")}")'


def series(spec: JobSpec) -> str:
    """Return `SERIES = forecasting.Series(…)`; empty for models that forecast nothing."""
    if spec.forecast is None:
        return ""
    forecast = spec.forecast
    by: list[tuple[str, Expression]] = (
        [("by", Items(tuple(map(literal, forecast.series))))] if forecast.series else []
    )
    names = ("horizon", "step", "season", "lags", "windows")
    numbers: list[tuple[str, Expression]] = [(name, literal(getattr(forecast, name))) for name in names]
    columns = [name for name in spec.columns if not name.startswith(PREFIX)]
    known_columns = [name for name in columns if name not in forecast.order_columns]
    if known_columns:
        numbers.append(("known", Items(tuple(map(literal, known_columns)))))
    if forecast.centre_or_zero:
        numbers.append(("centre", literal(forecast.centre_or_zero)))
    if forecast.holidays:
        numbers.append(("holidays", literal(forecast.holidays)))
    named = (("time", literal(forecast.time)), *by, *numbers)
    return layout(
        CallExpression("forecasting.Series", (literal(spec.label.column), *named)), prefix="SERIES = "
    )


def _lags(features: Sequence[Feature]) -> Expression | None:
    """Return `fc.Features(*fc.lags(28))` for features that are the lags of a series and nothing else."""
    count = len(features)
    names = [f"{LAG}{lag}" for lag in range(1, count + 1)]
    are_raw = all(feature.is_for_trees and not feature.part for feature in features)
    same = are_raw and [*map(str, chain.from_iterable(map(sources, features)))] == names
    return CallExpression("fc.Features", (f"*fc.lags({count})",)) if same and features else None
