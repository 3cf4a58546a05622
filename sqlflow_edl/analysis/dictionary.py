"""Typed dictionaries of WITH attributes: they drive validation, completion, the reference page and the plan.

`resolve` turns the attributes of a statement into checked values, and collects every error with its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean, nearest
from sqlflow_edl.analysis import values
from sqlflow_edl.analysis.values import Scalar, Setting, Type
from sqlflow_edl.syntax import ast

PLACE = "kubernetes."  # begins the names of settings that say where a job runs


@dataclass(frozen=True, slots=True)
class Attribute:
    """A row of the dictionary. default None: the compiler chooses, `doc` says how."""

    name: str
    type: Type
    doc: str
    default: Setting = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """The checked value of one written attribute, and where it stands."""

    value: Setting
    written: ast.Attribute


# Written in statements of other systems; accepted, noted, and without effect here.
WITHOUT_EFFECT = {
    "dist_strategy": "the strategy is chosen automatically",
    "gpus": "devices are found automatically",
    "train.verbose": "progress is always shown",
}


class Dictionary:
    """The attributes that one statement may have.

    elsewhere: names that mean something with another model, optimizer or loss, and which: a hint for who writes one.
    """

    def __init__(self, rows: Iterable[Attribute], elsewhere: Mapping[str, str] | None = None) -> None:
        self._elsewhere = elsewhere or {}
        self.rows = {row.name: row for row in rows}
        self._names: dict[str, str] = {}
        for row in self.rows.values():
            for name in (row.name, *row.aliases):
                self._names.setdefault(name.casefold(), row.name)

    def find(self, key: str) -> Attribute | None:
        """The row that `key` names: its name or an alias, case ignored."""
        name = self._names.get(key.casefold())
        return self.rows[name] if name else None

    def resolve(
        self, written: Iterable[ast.Attribute], errors: list[SQLFlowError], notes: list[str]
    ) -> dict[str, Resolved]:
        """name -> checked value, for what is written; errors and notes are appended."""
        resolved: dict[str, Resolved] = {}
        for attribute in written:
            if reason := WITHOUT_EFFECT.get(attribute.key.casefold()):
                notes.append(f"{attribute.key} has no effect: {reason}")
                continue
            row = self.find(attribute.key)
            if row is None:
                errors.append(self._unknown(attribute))
                continue
            if row.name in resolved:
                before = resolved[row.name].written.key
                errors.append(
                    SemanticError(
                        f"{row.name} is given twice, as {before} and as {attribute.key}"
                        if before.casefold() != attribute.key.casefold()
                        else f"{attribute.key} is given twice",
                        span=attribute.key_span,
                        hint="keep one of them",
                    )
                )
                continue
            try:
                resolved[row.name] = Resolved(check(row, attribute.value), attribute)
            except SQLFlowError as error:
                errors.append(error)
        return resolved

    def _unknown(self, attribute: ast.Attribute) -> SemanticError:
        key = attribute.key
        known = {**dict.fromkeys(self._names.values(), ""), **self._elsewhere}
        near = next((name for name in known if name.casefold() == key.casefold()), None) or nearest(
            key, known
        )
        if near is None and "." not in key:  # an unprefixed name is near one without its prefix
            short = {name.rpartition(".")[2]: name for name in known}
            last = nearest(key, short)
            near = short[last] if last else None
        if near and known[near]:
            hint = f"{near} belongs to {known[near]}"
        else:
            hint = f"did you mean {near}?" if near else "known: " + ", ".join(self._listed())
        return SemanticError(f"unknown attribute {key}", span=attribute.key_span, hint=hint)

    def _listed(self) -> list[str]:
        """The names for a hint; those of where a job runs are many, and one stands for them."""
        names = {f"{PLACE}…" if name.startswith(PLACE) else name for name in self.rows}
        return sorted(names)


def check(row: Attribute, value: ast.Value) -> Setting:
    """The value as the row's type; SemanticError with the place when it is of another type or out of range."""
    if row.type == "class weights" and isinstance(value, ast.MapValue):
        return "written"  # by class, each with its place: `analysis.weights` reads them
    if row.type == "pairs" and isinstance(value, ast.MapValue):
        return check_plain(
            row, values.pairs({name: values.plain(each) for name, each in value.items}), value.span
        )
    return check_plain(row, values.plain(value), value.span)


def check_plain(row: Attribute, value: Setting, span: Span | None = None) -> Setting:
    """The same of a value that is read already. span: where it stands."""
    setting = values.convert(row.type, value)
    if setting is None:
        raise SemanticError(f"{row.name} must be {values.WORDS[row.type]}", span=span, hint=row.doc)
    for item in setting if isinstance(setting, tuple) else (setting,):
        _check_range(row, item, span)
    if row.choices and isinstance(setting, str):
        by_folded = {choice.casefold(): choice for choice in row.choices}
        if setting.casefold() not in by_folded:
            raise SemanticError(
                f"{row.name} cannot be {setting!r}", span=span, hint=did_you_mean(setting, row.choices)
            )
        setting = by_folded[setting.casefold()]
    return setting


def _check_range(row: Attribute, item: Scalar, span: Span | None) -> None:
    if isinstance(item, bool) or not isinstance(item, int | float):
        return
    if (row.low is not None and item < row.low) or (row.high is not None and item > row.high):
        raise SemanticError(f"{row.name} = {item} is out of range", span=span, hint=_range_words(row))


def _range_words(row: Attribute) -> str:
    if row.low is not None and row.high is not None:
        return f"expected a value from {row.low:g} to {row.high:g}"
    return f"expected {row.low:g} or more" if row.low is not None else f"expected {row.high:g} or less"
