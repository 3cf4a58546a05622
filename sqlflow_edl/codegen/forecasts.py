"""Series of a forecast in a generated program, and the lags of its network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from edl.spec import Feature, JobSpec, sources
from edl.spec.forecast import LAG, PREFIX
from sqlflow_edl.codegen.source import CallExpression, Expression, Items, layout, literal


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
    named = (("time", literal(forecast.time)), *by, *numbers)
    return layout(
        CallExpression("forecasting.Series", (literal(spec.label.column), *named)), prefix="SERIES = "
    )


def lags(features: Sequence[Feature]) -> Expression | None:
    """Return `fc.Features(*fc.lags(28))` for features that are the lags of a series and nothing else."""
    count = len(features)
    names = [f"{LAG}{lag}" for lag in range(1, count + 1)]
    are_raw = all(feature.is_for_trees and not feature.part for feature in features)
    same = are_raw and [*map(str, chain.from_iterable(map(sources, features)))] == names
    return CallExpression("fc.Features", (f"*fc.lags({count})",)) if same and features else None
