"""Entries of the catalog: models, optimizers, schedules and losses by name, each with its typed parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Literal, Self, TypeVar

from edl.errors import SemanticError, Span, did_you_mean
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.values import Setting

Task = Literal[
    "classification",
    "regression",
    "ranking",
    "clustering",
    "anomaly detection",
    "dimensionality reduction",
    "forecasting",
    "transformation",
]
NETWORKS = ("keras", "torch")


@dataclass(frozen=True, slots=True)
class Entry:
    """Model, optimizer, schedule or loss: its name, description, parameters and aliases."""

    name: str
    doc: str
    params: tuple[AttributeRow, ...] = ()
    aliases: tuple[str, ...] = ()
    task: Task | None = None  # of models and losses: the kind of label
    frameworks: tuple[str, ...] = NETWORKS  # of a model, the first is the default

    def with_defaults(self, defaults: Mapping[str, Setting]) -> Self:
        """Return the entry with the default values in `defaults`; names that are no parameters of it are ignored."""
        changed = [row.name in defaults for row in self.params]
        if not any(changed):
            return self
        params = [
            replace(row, default=defaults[row.name]) if is_changed else row
            for row, is_changed in zip(self.params, changed, strict=True)
        ]
        return replace(self, params=tuple(params))


E = TypeVar("E", bound="Entry")
E_co = TypeVar("E_co", bound=Entry, covariant=True)


class _Entries(dict[str, E]):
    """Entries by name. check_name: raises an error for a name of which only the entry is not here."""

    def __init__(self, entries: Iterable[E], check_name: Callable[[str], object]) -> None:
        super().__init__((entry.name, entry) for entry in entries)
        self._check_name = check_name

    def __missing__(self, name: str) -> E:
        self._check_name(name)
        raise KeyError(name)


class Catalog(Generic[E_co]):
    """Entries by name and alias; case, underscores and spaces are ignored.

    check_name: as of `_Entries`. suffix: of names in other libraries, such as AdagradOptimizer. absent: names of other
    libraries without an entry -> the reason, and what to write instead.
    """

    def __init__(
        self,
        noun: str,
        entries: Iterable[E_co],
        check_name: Callable[[str], object] = lambda name: None,
        suffix: str = "",
        absent: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.noun = noun
        self._absent = absent or {}
        self._suffix = suffix
        self.entries: Mapping[str, E_co] = _Entries(entries, check_name)

    def find(self, name: str) -> E_co | None:
        key = normalize_name(name)
        key = key.removesuffix(self._suffix) or key
        for entry in self.entries.values():
            if key == normalize_name(entry.name) or key in map(normalize_name, entry.aliases):
                return entry
        return None

    def get(self, name: str, span: Span | None) -> E_co:
        """Return the entry. Raises SemanticError with the nearest name if there is none."""
        entry = self.find(name)
        if entry is None and (advice := self._absent.get(name.casefold())):
            raise SemanticError(f"there is no {self.noun} {name}: {advice[0]}", span=span, hint=advice[1])
        if entry is None:
            raise SemanticError(
                f"unknown {self.noun} {name}", span=span, hint=did_you_mean(name, self.entries, list_up_to=20)
            )
        return entry


@functools.cache
def normalize_name(name: str) -> str:
    return name.casefold().replace("_", "").replace(" ", "")
