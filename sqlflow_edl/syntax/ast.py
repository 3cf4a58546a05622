"""Syntax tree of a program: the output of the parser and the input of every later phase.

All nodes are frozen; spans are 0-based offsets into the text of the whole program, so an error found phases later can
still point at its source. `select` is the user's own text, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from edl.errors import Span, StatementSyntaxError
from sqlflow_edl.syntax.kinds import TRAITS, Kind, Traits


@dataclass(frozen=True, slots=True)
class Name:
    """Dotted name, unquoted. `text` is as written; parts of a registry path stay one part.

    version: number or tag of a model that is written as `name@version`; `str` restores that form. implied: the
    statement does not have the name, as the label of a CREATE MODEL without input_label_cols.
    """

    parts: tuple[str, ...]
    text: str
    span: Span
    version: int | str | None = None
    implied: bool = False

    def __str__(self) -> str:
        name = ".".join(self.parts)
        return name if self.version is None else f"{name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Constant:
    """Number, string, boolean or NULL."""

    value: int | float | str | bool | None
    span: Span


@dataclass(frozen=True, slots=True)
class ListValue:
    items: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class MapValue:
    items: tuple[tuple[str, Value], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """`function(args, key=value) [AS alias]`, in a COLUMN item or as the value of an attribute.

    The alias of a call at the top of a COLUMN item is also the item's.
    """

    function: str
    args: tuple[Value, ...]
    kwargs: tuple[tuple[str, Value], ...]
    span: Span
    function_span: Span
    alias: Name | None = None


@dataclass(frozen=True, slots=True)
class Star:
    """`*` in a COLUMN clause: every selected column."""

    span: Span


@dataclass(frozen=True, slots=True)
class Operation:
    """Operator of an expression with its operands: + has any number, others one or two. Words are in upper case.

    In COLUMN the operands are values, elsewhere expressions.
    """

    operator: str
    operands: tuple[Any, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Call in an expression: `SUM(price * amount)`, `COUNT(*)`."""

    function: str
    arguments: tuple[Expression, ...]
    span: Span


Expression = Name | Constant | Star | Operation | Aggregate
Value = Name | Constant | ListValue | MapValue | Call | Star | Operation


@dataclass(frozen=True, slots=True)
class Formula:
    """Objective or constraint of MAXIMIZE and MINIMIZE. `text` is as written."""

    text: str
    expression: Expression
    span: Span
    group: Name | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Attribute:
    """`key = value` of a WITH clause; `key` is as written, dots included."""

    key: str
    value: Value
    key_span: Span

    @property
    def span(self) -> Span:
        return Span(self.key_span.start, self.value.span.end)


@dataclass(frozen=True, slots=True)
class ColumnItem:
    """Item of COLUMN: a Name, Star, Call, Operation, or a string Constant (a regular expression over column names)."""

    value: Value
    alias: Name | None

    @property
    def span(self) -> Span:
        return self.value.span


@dataclass(frozen=True, slots=True)
class ColumnClause:
    """Items of COLUMN.

    only: no other column is a feature, as with TRANSFORM of BigQuery ML. without: columns that its items leave out.
    """

    items: tuple[ColumnItem, ...]
    for_input: Name | None
    span: Span
    only: bool = False
    without: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Validate:
    """VALIDATE ON (query) or VALIDATE fraction; exactly one of the two is set."""

    query: str | None
    fraction: float | None
    span: Span
    query_span: Span | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """Statement of any kind. Fields that do not apply to its kind are empty."""

    kind: Kind
    text: str  # as written, without the final semicolon
    span: Span
    select: str = ""  # the user's SELECT, byte for byte, surrounding white space removed
    select_span: Span | None = None
    plan: bool = False  # EXPLAIN query TRAIN …: show the plan, start nothing
    # TRAIN's model class; the model of EVALUATE, EXPLAIN, SHOW, DESCRIBE, SET, DROP
    model: Name | None = None
    target: Name | None = None  # PREDICT's target
    append: Constant | None = None  # APPEND of PREDICT: rows are added to the target
    prefix: str = ""  # before the name of the predicted column, without a target
    attributes: tuple[Attribute, ...] = ()
    columns: tuple[ColumnClause, ...] = ()
    labels: tuple[Name, ...] = ()
    validate: Validate | None = None
    using: Name | None = None
    into: tuple[Name, ...] = ()
    # TO MAXIMIZE | MINIMIZE
    direction: Literal["maximize", "minimize"] | None = None
    objective: Formula | None = None
    constraints: tuple[Formula, ...] = ()
    # TO RUN program.py | image CMD …
    image: Name | None = None
    command: tuple[str, ...] = ()
    # SHOW MODELS LIKE pattern; DROP MODEL IF EXISTS
    like: str | None = None
    if_exists: bool = False
    if_absent: bool = False  # CREATE MODEL IF NOT EXISTS
    facts: tuple[Attribute, ...] = ()  # for people, which the model of CREATE MODEL keeps
    tag: str = ""  # of SET MODEL … TAG, DROP MODEL … TAG
    warnings: tuple[str, ...] = ()
    # the error to raise if the database refuses ordinary SQL that was probably meant as another statement
    refused: StatementSyntaxError | None = None

    @property
    def traits(self) -> Traits:
        """Traits of its kind."""
        return TRAITS[self.kind]

    @property
    def trains(self) -> bool:
        """True for TRAIN and its short form."""
        return self.traits.makes == "model" and self.traits.generated

    @property
    def used_model(self) -> Name | None:
        """Stored model that the statement uses or changes, not counting the models of FEATURES in COLUMN."""
        used: Name | None = getattr(self, self.traits.uses) if self.traits.uses else None
        return used

    @property
    def names_image(self) -> bool:
        """True if TO TRAIN names a class of an image, image/Class."""
        return self.model is not None and "/" in self.model.text

    @property
    def runs_file(self) -> bool:
        """True if TO RUN names a Python file, and no image."""
        return str(self.image).endswith(".py")

    @property
    def shows_features(self) -> bool:
        """True if a PREDICT gives the features in the place of predictions, as SHOW FEATURES does."""
        report = self.attribute("predict.report")
        return report is not None and getattr(report.value, "value", "") == "features"

    @property
    def reused_models(self) -> tuple[Name, ...]:
        """Models of FEATURES(m) in COLUMN, which reuses their features."""
        items = (item.value for clause in self.columns for item in clause.items)
        models = (reused_model(value) for value in items if isinstance(value, Call))
        return tuple(name for name in models if name is not None)

    def attribute(self, key: str) -> Attribute | None:
        """Return the attribute of that name, case ignored; the last one if it is written twice."""
        last = None
        for attribute in self.attributes:
            if attribute.key.casefold() == key.casefold():
                last = attribute
        return last


def reused_model(call: Call) -> Name | None:
    """Return the model of FEATURES(m, …) or FEATURES('m@2', …), or None for another call."""
    if call.function.upper() != "FEATURES":
        return None
    named = (value for key, value in call.kwargs if key.casefold() == "model")
    argument = next(iter((*call.args, *named)), None)
    if isinstance(argument, Constant) and isinstance(argument.value, str):
        name, _, version = argument.value.partition("@")
        number = int(version) if version.isdecimal() else version or None
        return Name((name,), argument.value, argument.span, number)
    return argument if isinstance(argument, Name) else None


def calls(value: Value) -> Iterator[Call]:
    """Yield every function call in `value`, outermost first."""
    if isinstance(value, Call):
        yield value
        for arg in (*value.args, *(item for _, item in value.kwargs)):
            yield from calls(arg)
    elif isinstance(value, ListValue | Operation):
        for item in value.items if isinstance(value, ListValue) else value.operands:
            yield from calls(item)
    elif isinstance(value, MapValue):
        for _, item in value.items:
            yield from calls(item)
