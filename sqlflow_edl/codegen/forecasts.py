"""Series of a forecast in a generated program, and the lags of its network."""

from __future__ import annotations

from collections.abc import Sequence

from edl.spec import Feature, JobSpec, Raw
from edl.spec.forecast import LAG, PREFIX
from sqlflow_edl.codegen.source import Call, Expression, Items, layout, literal


def series(spec: JobSpec) -> str:
    """Return `SERIES = forecasting.Series(…)`; empty for models that forecast nothing."""
    if spec.forecast is None:
        return ""
    found = spec.forecast
    by: list[tuple[str, Expression]] = (
        [("by", Items(tuple(map(literal, found.series))))] if found.series else []
    )
    names = ("horizon", "step", "season", "lags", "windows")
    numbers: list[tuple[str, Expression]] = [(name, literal(getattr(found, name))) for name in names]
    own = [name for name in spec.columns if not name.startswith(PREFIX)]
    known = [name for name in own if name not in found.columns]
    if known:
        numbers.append(("known", Items(tuple(map(literal, known)))))
    if found.offset:
        numbers.append(("centre", literal(found.offset)))
    named = (("time", literal(found.time)), *by, *numbers)
    return layout(Call("forecasting.Series", (literal(spec.label.column), *named)), prefix="SERIES = ")


def lags(features: Sequence[Feature]) -> Expression | None:
    """Return `fc.Features(*fc.lags(28))` for features that are the lags of a series and nothing else."""
    count = len(features)
    same = all(each == Raw(f"{LAG}{lag}") for lag, each in enumerate(features, 1))
    return Call("fc.Features", (f"*fc.lags({count})",)) if same and features else None
