"""The table of relations, and the cases that seeds make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import lcm
from random import Random
from typing import Any, Literal

from tests.relations.comparing import Pair
from tests.relations.places import DATABASES, Place
from tests.relations.statements import EVERY, MODELS, Train, draw_train
from tests.relations.tables import FEATURES, SHAPES, Table, draw_table

Kind = Literal["exact", "split held", "statistical"]
Pairs = Iterator[Pair]


@dataclass(frozen=True)
class Input:
    """Input of a relation, which a failure makes smaller."""

    table: Table
    train: Train | None = None


@dataclass(frozen=True)
class Case:
    """One check of a relation. source, model: one of the relation's. draw: random numbers of the relation itself."""

    place: Place
    source: str
    model: str
    input: Input
    seed: int
    draw: Random = field(default_factory=Random, compare=False)

    @property
    def table(self) -> Table:
        return self.input.table

    @property
    def train(self) -> Train:
        assert self.input.train is not None
        return self.input.train

    @property
    def family(self) -> str:
        return MODELS[self.model].family


@dataclass(frozen=True)
class Relation:
    """trains: each pair has two trainings. tolerance: a row of `comparing.TOLERANCES`. slow: takes seconds."""

    name: str
    check: Callable[[Case], Pairs]
    kind: Kind
    tolerance: str
    trains: bool
    sources: tuple[str, ...]
    models: tuple[str, ...]
    shapes: tuple[str, ...]
    draw: Callable[[Random, str, str, str], Input]
    slow: bool = False

    @property
    def doc(self) -> str:
        return " ".join((self.check.__doc__ or "").split("\n\n")[0].split())

    @property
    def combinations(self) -> int:
        """Seeds, from any on, that meet every source with every model."""
        return len(self.sources) * len(self.models)

    @property
    def cover(self) -> int:
        """Seeds, from any multiple of it on, that meet every source and every model."""
        return max(len(self.sources), len(self.models))

    def combination(self, seed: int) -> tuple[str, str]:
        """Source and model of a seed: a diagonal walk through all pairs of them."""
        sources, models = len(self.sources), len(self.models)
        shift = seed // lcm(sources, models)
        return self.sources[seed % sources], self.models[(seed + shift) % models]

    def input(self, seed: int) -> Input:
        source, model = self.combination(seed)
        draw = Random(f"{self.name} {seed}")  # noqa: S311 - it is to be found again
        return self.draw(draw, draw.choice(self.shapes), source, model)

    def case(self, place: Place, seed: int, of: Input | None = None) -> Case:
        source, model = self.combination(seed)
        draw = Random(f"check {self.name} {seed}")  # noqa: S311
        return Case(place, source, model, of or self.input(seed), seed, draw)


RELATIONS: dict[str, Relation] = {}


def training_input(
    kinds: tuple[str, ...] = FEATURES, labels: tuple[str, ...] = (), **options: str
) -> Callable[[Random, str, str, str], Input]:
    """Inputs with a table and a TRAIN statement over it. options: of the statement, `__` for a dot."""

    def draw_input(draw: Random, shape: str, source: str, model: str) -> Input:
        label = draw.choice(labels or MODELS[model].labels)
        table = draw_table(draw, shape, kinds, label, finite=source in ("mysql", "maxcompute"))
        return Input(table, draw_train(draw, model, table).with_options(**options))

    return draw_input


def relation(
    kind: Kind = "exact",
    *,
    tolerance: str = "exact",
    trains: bool = False,
    sources: tuple[str, ...] = DATABASES,
    models: tuple[str, ...] = EVERY,
    shapes: tuple[str, ...] = SHAPES,
    draw: Callable[[Random, str, str, str], Input] | None = None,
    name: str = "",
    slow: bool = False,
) -> Callable[[Callable[[Case], Pairs]], Callable[[Case], Pairs]]:
    """Enter a check into the table, under its own name unless another is given."""

    def enter(check: Callable[[Case], Pairs]) -> Callable[[Case], Pairs]:
        entry = Relation(
            name or check.__name__,
            check,
            kind,
            tolerance,
            trains,
            sources,
            models,
            shapes,
            draw or training_input(),
            slow,
        )
        assert entry.name not in RELATIONS, entry.name
        RELATIONS[entry.name] = entry
        return check

    return enter


def with_table(found: Input, table: Table) -> Input:
    return replace(found, table=table)


__all__ = [
    "RELATIONS",
    "Any",
    "Case",
    "Input",
    "Pairs",
    "Relation",
    "relation",
    "training_input",
    "with_table",
]
