"""Portfolio of a search: the candidates, in the order in which they are tried.

The order is that in which they help most on the tables of `benchmarks.quality`: strong models of different kinds
first, then variants of them, which an ensemble can average.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from edl.frameworks import is_installed
from edl.installation import install_extras

Value = int | float | str | tuple[int, ...]
TREES, LINEAR, DNN = "BoostedTrees", "Linear", "DNN"
MEMBERS = "model.members"
USUAL_LEAVES = 31  # of LightGBM
Lines = tuple[tuple[str, str], ...]  # attributes as text: name, value


@dataclass(frozen=True, eq=False)
class Variant:
    """Candidate before its rows are known: a family of models and the attributes of its statement.

    encodes: texts that COLUMN does not mention are encoded by the labels of other rows, not left to the trees.
    generates: pairs of columns that COLUMN does not mention are features, too, where they tell more together.
    """

    family: str
    framework: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    encodes: bool = False
    generates: bool = False

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Attributes of its statement, with the framework."""
        return {"model.framework": self.framework, **self.attributes}

    @cached_property
    def lines(self) -> Lines:
        return tuple((name, _write(value)) for name, value in self.values.items())

    @property
    def kinds(self) -> tuple[str, str]:
        """Values of auto.models that include the variant."""
        kind = {TREES: "trees", LINEAR: "linear"}.get(self.family, "networks")
        return kind, self.framework

    @property
    def is_single_network(self) -> bool:
        """True for a network without members, which takes a sixth of the time of one with eight."""
        return self.attributes.get(MEMBERS) == 1

    def with_one_member(self) -> Variant:
        """Return the candidate; of a network of members, one without."""
        attributes = {**self.attributes, MEMBERS: 1} if self.family == DNN else self.attributes
        return replace(self, attributes=attributes)

    @property
    def leaves(self) -> float:
        """Largest number of leaves of its trees."""
        depth = self.attributes.get("model.max_depth")
        leaves = self.attributes.get("model.num_leaves", USUAL_LEAVES)
        return 2.0**depth if isinstance(depth, int) else float(leaves) if isinstance(leaves, int) else 0.0


def _write(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else f"{value}"


def _trees(framework: str, *, encodes: bool = False, generates: bool = False, **parameters: Value) -> Variant:
    named = {
        "rate": "optimizer.learning_rate",
        "rounds": "train.num_boost_round",
        "patience": "train.early_stopping",
    }
    usual = {"rounds": 5000, "patience": 60}
    attributes = {named.get(name, f"model.{name}"): value for name, value in (usual | parameters).items()}
    return Variant(TREES, framework, attributes, encodes, generates)


def _network(**parameters: Value) -> Variant:
    named = {"rate": "optimizer.learning_rate", "decay": "optimizer.weight_decay"}
    attributes = {named.get(name, f"model.{name}"): value for name, value in parameters.items()}
    return Variant(DNN, "torch", attributes)


PORTFOLIO = (
    _trees("lightgbm", rate=0.05),
    _network(),
    _trees("lightgbm", rate=0.03, num_leaves=63, colsample_bytree=0.7, subsample=0.8, reg_lambda=1.0),
    _trees("xgboost", rate=0.05, max_depth=6, subsample=0.8, colsample_bytree=0.8),
    Variant("RealMLP", "torch"),
    _trees("lightgbm", generates=True, rate=0.05, colsample_bytree=0.8, subsample=0.8),
    _trees("lightgbm", rate=0.05, num_leaves=15, colsample_bytree=0.5, subsample=0.8, reg_lambda=5.0),
    _network(hidden_units=(256, 128), dropout=0.2),
    _trees(
        "lightgbm",
        encodes=True,
        rate=0.03,
        num_leaves=127,
        min_child_samples=50,
        colsample_bytree=0.5,
        subsample=0.7,
    ),
    Variant(LINEAR, "torch"),
    _trees("xgboost", rate=0.03, max_depth=9, min_child_weight=5.0, subsample=0.7, colsample_bytree=0.6),
    _trees("lightgbm", rate=0.05, num_leaves=15, colsample_bytree=0.6, extra_trees=True),
    _trees("lightgbm", rate=0.05, num_leaves=7, colsample_bytree=0.8, min_child_samples=10),
    _network(hidden_units=(128, 64), dropout=0.2, members=1),
    _trees("xgboost", rate=0.05, max_depth=4, subsample=0.9, colsample_bytree=0.5, reg_lambda=3.0),
    _trees("lightgbm", rate=0.02, num_leaves=31, colsample_bytree=0.4, subsample=0.6, min_child_samples=5),
    _network(hidden_units=(512, 256), dropout=0.3, decay=0.01),
    _trees("xgboost", rate=0.02, max_depth=12, min_child_weight=10.0, subsample=0.6, colsample_bytree=0.4),
    _trees("lightgbm", rate=0.1, num_leaves=4, colsample_bytree=0.6, min_child_samples=30),
    _trees(
        "lightgbm", rate=0.015, num_leaves=255, min_child_samples=100, colsample_bytree=0.6, subsample=0.8
    ),
    _trees("xgboost", rate=0.1, max_depth=2, subsample=0.8, colsample_bytree=0.7),
)
SHORT = 60.0  # seconds of a search, below which cheap models are tried first
FIRST_TREES = 3  # of such a search, before a linear model and a network of one member
FIRST_OF_SHORT = 8  # variants of such a search that are tried in their order, before results choose
FEW_ROWS, LEAVES_OF_FEW = 10_000, 12  # training rows below which trees with about so many leaves come first
FEWER, WIDE = 12, 300  # variants for more than so many columns, because their plans take long


def places_by_leaves(candidates: Sequence[Variant | None], rows: int) -> list[int]:
    """Return the places of candidates in the order of their trials.

    With few rows, small trees come first: the trees of the portfolio, apart from the first one and from those that
    encode or generate features, change places among each other. None: a candidate that is not of the portfolio.
    """
    places = list(range(len(candidates)))
    if rows >= FEW_ROWS:
        return places
    known = {id(variant) for variant in PORTFOLIO[1:] if variant.family == TREES}
    trees = {
        place: abs(math.log(variant.leaves / LEAVES_OF_FEW))
        for place, variant in enumerate(candidates)
        if variant is not None and id(variant) in known and not (variant.encodes or variant.generates)
    }
    for place, other in zip(trees, sorted(trees, key=trees.__getitem__), strict=True):
        places[place] = other
    return places


NOT_INSTALLED = " is not installed"  # in the note on a framework
_LACKS = {
    "lightgbm": "it is usually the best on tables",
    "torch": "without it neither networks nor linear models are tried",
}


def note_on_missing(framework: str) -> str:
    """Return the note on a framework of the portfolio that is not installed."""
    lacks = _LACKS.get(framework, "its candidates are not tried")
    return f"{framework}{NOT_INSTALLED}; {lacks}: {install_extras(framework)}"


def sort_by_cost(candidates: Sequence[Variant], seconds: float) -> list[Variant]:
    """Return the variants; of a search of few seconds, which may end before them, slow networks last."""
    if seconds >= SHORT:
        return list(candidates)
    trees = [variant for variant in candidates if variant.family == TREES]
    cheap = [variant for variant in candidates if variant.family == LINEAR or variant.is_single_network]
    others = [variant for variant in candidates if variant not in trees and variant not in cheap]
    return [*trees[:FIRST_TREES], *cheap, *trees[FIRST_TREES:], *others]


def variants(models: Sequence[str], trials: int) -> tuple[list[Variant], list[str]]:
    """Return the variants to try, at most `trials` (0: all), and the frameworks that are not installed.

    models: values of auto.models; empty allows all. Variants with generated features are not among `trials`, since they
    are left out where nothing is generated.
    """
    chosen = [variant for variant in PORTFOLIO if not models or set(variant.kinds) & set(models)]
    frameworks = dict.fromkeys([variant.framework for variant in chosen])
    missing = [framework for framework in frameworks if not is_installed(framework)]
    installed = [variant for variant in chosen if variant.framework not in missing]
    counts = itertools.accumulate([not variant.generates for variant in installed])
    chosen = [
        variant for variant, count in zip(installed, counts, strict=True) if not trials or count <= trials
    ]
    return chosen, missing
