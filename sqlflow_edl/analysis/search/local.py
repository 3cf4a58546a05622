"""Further candidates of the short form, among which a search chooses by the results of the portfolio.

They are spread over the settings of each model. The search tries those near the settings that were good; see
`edl.run.search.schedule`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlflow_edl.analysis.search.portfolio import TREES, Value, Variant
from sqlflow_edl.analysis.search.space import steps

DIGITS = 2  # significant digits of a number
_MIDDLE = 0.5  # coordinate of a setting that a model does not have, or has by default


@dataclass(frozen=True, slots=True)
class Axis:
    """Setting of a model and its values: `choices`, from small to large, or numbers from `low` to `high`."""

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    choices: tuple[Value, ...] = ()

    def value(self, place: float) -> Value:
        """Return the value at a place from 0 to 1, exclusive."""
        if self.choices:
            return self.choices[int(place * len(self.choices))]
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        number = low + place * (high - low)
        number = float(f"{math.exp(number) if self.log else number:.{DIGITS}g}")
        return round(number) if self.whole else number

    def place(self, value: Value | None) -> float:
        """Return the place of a value; the place of None, a default, is the middle."""
        if value is None:
            return _MIDDLE
        if self.choices:
            return (self.choices.index(value) + 0.5) / len(self.choices) if value in self.choices else _MIDDLE
        if not isinstance(value, int | float):
            raise TypeError(f"{self.name} is a number, not {value!r}")
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        place = ((math.log(value) if self.log else value) - low) / (high - low)
        return min(1.0, max(0.0, place))


@dataclass(frozen=True)
class Region:
    """Settings of one kind of model; `count` points of them are candidates."""

    model: Variant
    axes: tuple[Axis, ...]
    count: int

    def includes(self, variant: Variant) -> bool:
        return (variant.family, variant.framework) == (self.model.family, self.model.framework)

    @cached_property
    def further_variants(self) -> tuple[Variant, ...]:
        """Candidates that are spread over the region by an additive recurrence; see `space.points`."""
        return tuple(self._spread())

    def _spread(self) -> Iterator[Variant]:
        moves = steps(len(self.axes))
        for number in range(1, self.count + 1):
            places = [(0.5 + number * move) % 1.0 for move in moves]
            axis_values = {
                axis.name: axis.value(place) for axis, place in zip(self.axes, places, strict=True)
            }
            attributes = {**self.model.attributes, **axis_values}
            encodes = self.model.framework == "lightgbm" and number % ENCODING == 0
            yield replace(self.model, attributes=attributes, encodes=encodes)


def _tree_axes(size: Axis, least: Axis) -> tuple[Axis, ...]:
    """Return the axes of trees: the same number of them for each library, so that their points compare."""
    return (
        Axis("optimizer.learning_rate", 0.01, 0.1, log=True),
        size,
        Axis("model.colsample_bytree", 0.3, 1.0),
        Axis("model.subsample", 0.5, 1.0),
        Axis("model.reg_lambda", 0.01, 30.0, log=True),
        least,
    )


def _network_axes(slow: float, fast: float, *hidden_units: tuple[int, ...]) -> tuple[Axis, ...]:
    """Return the axes of networks. slow, fast: learning rates."""
    return (
        Axis("optimizer.learning_rate", slow, fast, log=True),
        Axis("model.hidden_units", choices=hidden_units),
        Axis("model.dropout", 0.0, 0.4),
        Axis("optimizer.weight_decay", 0.002, 0.2, log=True),
    )


ENCODING = 4  # points of trees of which one encodes texts
ROUNDS: Mapping[str, Value] = {"train.num_boost_round": 5000, "train.early_stopping": 60}
REGIONS = (
    Region(
        Variant(TREES, "lightgbm", ROUNDS),
        _tree_axes(
            Axis("model.num_leaves", 4, 255, log=True, whole=True),
            Axis("model.min_child_samples", 5, 100, log=True, whole=True),
        ),
        24,
    ),
    Region(
        Variant(TREES, "xgboost", ROUNDS),
        _tree_axes(
            Axis("model.max_depth", 2, 12, whole=True), Axis("model.min_child_weight", 0.5, 30.0, log=True)
        ),
        16,
    ),
    Region(
        Variant("DNN", "torch"),
        _network_axes(0.0005, 0.005, (128,), (128, 64), (256, 128), (256, 256), (512, 256)),
        16,
    ),
    Region(
        Variant("RealMLP", "torch"),
        _network_axes(0.005, 0.05, (128, 128, 128), (256, 256, 256), (512, 512)),
        8,
    ),
)

COUNT = sum(region.count for region in REGIONS)


def further_candidates(variants: Sequence[Variant], most: int) -> list[Variant]:
    """Return further candidates of the models of the portfolio, at most `most`, with different models in turn."""
    regions = [region for region in REGIONS if any(map(region.includes, variants))]
    placed = [
        ((number + 0.5) / region.count, position, variant)
        for position, region in enumerate(regions)
        for number, variant in enumerate(region.further_variants)
    ]
    return [variant for _, _, variant in sorted(placed, key=lambda item: item[:2])][:most]


@functools.cache
def coordinates(variant: Variant) -> tuple[float | str, ...]:
    """Return the point of a candidate: the model, and the places of its settings; see `edl.spec.Candidate`.

    Settings of trees and of networks have places of their own.
    """
    of_families: dict[bool, list[float]] = {}
    for region in REGIONS:
        of_trees = region.model.family == TREES
        middle = [_MIDDLE] * len(region.axes)
        of_families.setdefault(of_trees, middle)
        if region.includes(variant):
            of_families[of_trees] = [axis.place(variant.attributes.get(axis.name)) for axis in region.axes]
    name, kind = f"{variant.family} of {variant.framework}", "encodes" if variant.encodes else ""
    if variant.attributes.get("model.extra_trees"):
        kind = "extra trees"
    return (name, str(variant.attributes.get("loss", kind)), *of_families[True], *of_families[False])
