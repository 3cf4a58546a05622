"""Columns of a table as fields of PMML, and the columns of the matrix of trees as fields derived from them.

A text is a string, a boolean is a boolean, and all else is a double: dates and times are seconds since 1970 in UTC,
times of day seconds since midnight. NULL is a missing value. The id of a category is derived as a whole number, and is
missing where the libraries of trees get none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyarrow import types

from edl.errors import SemanticError
from edl.features.column_types import columns_of_large_ids
from edl.spec import (
    Bucket,
    CategoryId,
    DatePart,
    Feature,
    Source,
    Vocabulary,
    category_of,
    is_category,
    source_columns,
    sources,
)
from edl.spec.categories import Category
from edl.spec.computed import is_portable
from sqlflow_edl.extensions.pmml.xml import Xml

_WORDS = {"HashBucket": "HASH", "Cross": "CROSS", "ListOf": "SPARSE", "NGrams": "NGRAMS", "Concat": "CONCAT"}
_LARGEST = 1.7976931348623157e308
_LARGEST_EXPONENT = 709.782712893384  # of e: the power still is a double
_FIRST = {"month": 1, "day": 1, "weekday": 1}  # part of a time -> its value of id 0, if it is not 0
_DAY = 86_400


def unsupported_column_error(column: object, names: Sequence[str]) -> SemanticError:
    """Return the error of a feature or category that has no form."""
    kind = type(column).__name__
    return SemanticError(
        f"{_WORDS.get(kind, kind)} of column {' and '.join(names)} has no form in PMML",
        hint="train without it, or write the library's own file, of the matrix of features (-o m.txt, -o m.ubj)",
    )


@dataclass(frozen=True)
class FieldRef:
    """FieldRef by its name."""

    name: str


@dataclass(frozen=True)
class Apply:
    """Function of PMML over other expressions; `if` without a third one is missing where its condition is false."""

    function: str
    arguments: tuple[Expression, ...]


Expression = FieldRef | Apply | float


def apply(function: str, *arguments: Expression) -> Apply:
    return Apply(function, arguments)


class PmmlFields:
    """Columns of a table by name, with their types in training. Writes the fields that features ask for."""

    def __init__(self, schema: pa.Schema, features: Sequence[Feature]) -> None:
        self._schema = schema
        self._features = features
        self._names = {name.casefold() for name in schema.names}
        self._derived = Xml()
        self._expressions: dict[tuple[str, object], FieldRef] = {}
        self.used: dict[str, None] = {}  # columns of the table, in the order of their first use

    @property
    def derived_lines(self) -> Sequence[str]:
        """Lines of the derived fields so far."""
        return self._derived.lines[1:]

    def of_feature(self, place: int) -> FieldRef:
        """Return the field of a column of the matrix."""
        feature = self._features[place]
        if not feature.is_for_trees:
            raise unsupported_column_error(feature, tuple(source_columns(feature)))
        category = category_of(feature)
        if is_category(category):
            return self._id(category)
        [source] = sources(feature)
        if not feature.part:
            return self._number(source)
        part = self._part(str(source), feature.part)
        return self._once("number", (source, feature.part), _plus(part, _FIRST.get(feature.part, 0)))

    def is_id(self, place: int) -> bool:
        """Return True if a column of the matrix has the ids of a category."""
        return is_category(category_of(self._features[place]))

    def fields(self) -> Mapping[str, tuple[str, str]]:
        """Return the type of the values and of the operations of each used column."""
        return {name: self._type_of(name) for name in self.used}

    def _type_of(self, name: str) -> tuple[str, str]:
        kind = self._schema.field(name).type
        if types.is_string(kind) or types.is_large_string(kind):
            return "string", "categorical"
        return ("boolean", "categorical") if types.is_boolean(kind) else ("double", "continuous")

    def _raw(self, name: str) -> FieldRef:
        self.used[name] = None
        return FieldRef(name)

    # Numbers -------------------------------------------------------------------------------------------------

    def _number(self, source: Source) -> FieldRef:
        """Return the field of a number, missing where it is not finite."""
        if isinstance(source, str):
            kind = self._type_of(source)[0]
            if kind == "string":
                raise SemanticError(f"column {source} is a text, and PMML needs a number")
            raw = self._raw(source)
            as_number = _where_known(apply("if", raw, 1.0, 0.0), raw)
            return self._once("number", source, as_number) if kind == "boolean" else raw
        if not is_portable(source):
            raise SemanticError(
                f"{source} is computed in Python, and has no form in PMML", hint="compute it in the SELECT"
            )
        operands = [
            operand if isinstance(operand, float) else self._number(operand) for operand in source.operands
        ]
        value = self._once("value", source, _OPERATORS[source.operator](*operands))
        bounded = apply("lessOrEqual", apply("abs", value), _LARGEST)
        return self._once("number", source, _where_known(apply("if", bounded, value), value))

    def _part(self, column: str, part: str) -> Expression:
        """Return a part of a time; month, day and weekday begin at 0.

        Days become dates as in H. Hinnant's `civil_from_days`: years begin in March, and 400 of them are an era.
        """
        kind = self._schema.field(column).type
        if not types.is_temporal(kind):
            raise SemanticError(f"column {column} is of type {kind}, and PMML needs its seconds")
        seconds = self._raw(column)

        def once(what: str, expression: Expression) -> FieldRef:
            return self._once(what, column, _where_known(expression, seconds))

        if part == "hour":
            return once("hour", _quotient(_remainder(seconds, _DAY), 3600))
        if part == "minute":
            return once("minute", _quotient(_remainder(seconds, 3600), 60))
        days = once("days", _quotient(seconds, _DAY))
        if part == "weekday":
            return once("weekday", _remainder(_plus(days, 3), 7))
        shifted = once("shifted", _plus(days, 719_468))  # since the first of March of the year 0
        era = once("era", _quotient(shifted, 146_097))
        of_era = once("day of era", _minus(shifted, _times(era, 146_097)))
        leaps = _plus(_minus(of_era, _quotient(of_era, 1460)), _quotient(of_era, 36_524))
        year = once("year of era", _quotient(_minus(leaps, _quotient(of_era, 146_096)), 365))
        begun = _minus(_plus(_times(year, 365), _quotient(year, 4)), _quotient(year, 100))
        of_year = once("day of year", _minus(of_era, begun))
        month = once("month", _quotient(_plus(_times(of_year, 5), 2), 153))  # 0 is March
        next_year = once("next year", _quotient(month, 10))
        if part == "year":
            return _plus(_plus(year, _times(era, 400)), next_year)
        if part == "month":
            return _minus(_plus(month, 2), _times(next_year, 12))
        return once("day of month", _minus(of_year, _quotient(_plus(_times(month, 153), 2), 5)))

    # Ids -----------------------------------------------------------------------------------------------------

    def _id(self, category: Category) -> FieldRef:
        if (field := self._expressions.get(("id", category))) is not None:
            return field
        make = IDS.get(type(category))
        if make is None:
            raise unsupported_column_error(category, tuple(source_columns(category)))
        make(self, category)
        return self._expressions["id", category]

    def _start_id(self, category: Category) -> None:
        names = tuple(source_columns(category))
        field = self._name("id", names[0])
        self._expressions["id", category] = field
        self._derived.start("DerivedField", name=field.name, optype="categorical", dataType="integer")

    def _vocabulary(self, category: Vocabulary) -> None:
        """Derive the place of a value in the vocabulary by a table."""
        [name] = source_columns(category)
        if not isinstance(category.column, str):
            raise unsupported_column_error(category, [name])
        kind = self._schema.field(name).type
        if isinstance(category.values[0], str) and not _holds_texts(kind):
            raise unsupported_column_error(category, [name])
        if columns_of_large_ids([category], [name]) and types.is_integer(
            kind
        ):  # a double holds several as one
            raise unsupported_column_error(category, [name])
        texts = [str(value) for value in category.values]
        if types.is_boolean(kind):
            texts = [{"1": "true", "0": "false"}.get(text, text) for text in texts]
        raw = self._raw(name)
        self._start_id(category)
        unseen = category.unseen_id if category.unseen else None
        with self._derived.element("MapValues", outputColumn="id", dataType="integer", defaultValue=unseen):
            self._derived.leaf("FieldColumnPair", field=raw.name, column="value")
            with self._derived.element("InlineTable"):
                for place, text in enumerate(texts):
                    with self._derived.element("row"):
                        self._derived.leaf("value", text)
                        self._derived.leaf("id", str(place))
        self._derived.end()

    def _bucket(self, category: Bucket) -> None:
        number = self._number(category.column)
        bounds = [None, *category.boundaries, None]
        self._start_id(category)
        with self._derived.element("Discretize", field=number.name, dataType="integer"):
            for place, (low, high) in enumerate(pairwise(bounds)):
                with self._derived.element("DiscretizeBin", binValue=place):
                    closure = "openOpen" if low is None else "closedOpen"
                    self._derived.leaf("Interval", closure=closure, leftMargin=low, rightMargin=high)
        self._derived.end()

    def _category_id(self, category: CategoryId) -> None:
        """Derive the number itself if it is whole and in range."""
        number = self._number(category.column)
        inside = apply(
            "and",
            apply("greaterOrEqual", number, 0.0),
            apply("lessOrEqual", number, float(category.size - 1)),
            apply("equal", number, apply("floor", number)),
        )
        otherwise = (float(category.unseen_id),) if category.unseen else ()
        self._write_id(category, _where_known(apply("if", inside, number, *otherwise), number))

    def _date_part(self, category: DatePart) -> None:
        part = self._once(
            "part", (category.column, category.part), self._part(category.column, category.part)
        )
        inside = apply(
            "and", apply("greaterOrEqual", part, 0.0), apply("lessThan", part, float(category.size))
        )
        self._write_id(category, _where_known(apply("if", inside, part), part))

    def _write_id(self, category: Category, expression: Expression) -> None:
        self._start_id(category)
        _write(self._derived, expression)
        self._derived.end()

    # Fields --------------------------------------------------------------------------------------------------

    def _once(self, what: str, key: object, expression: Expression) -> FieldRef:
        """Return the derived field of a number, which is written the first time."""
        if (what, key) not in self._expressions:
            field = self._name(what, str(key[0] if isinstance(key, tuple) else key))
            self._expressions[what, key] = field
            with self._derived.element(
                "DerivedField", name=field.name, optype="continuous", dataType="double"
            ):
                _write(self._derived, expression)
        return self._expressions[what, key]

    def _name(self, what: str, column: str) -> FieldRef:
        """Return a name that no column and no other field has."""
        name = base = f"{what} of {column}"
        number = 1
        while name.casefold() in self._names:
            number += 1
            name = f"{base} {number}"
        self._names.add(name.casefold())
        return FieldRef(name)


def _holds_texts(kind: pa.DataType) -> bool:
    """Return True for types of which a vocabulary has the texts of the values."""
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
    )


def _write(xml: Xml, expression: Expression) -> None:
    if isinstance(expression, FieldRef):
        xml.leaf("FieldRef", field=expression.name)
    elif isinstance(expression, float):
        xml.leaf("Constant", repr(expression), dataType="double")
    else:
        with xml.element("Apply", function=expression.function):
            for argument in expression.arguments:
                _write(xml, argument)


def _plus(a: Expression, number: float | Expression) -> Expression:
    return a if number == 0 else apply("+", a, _constant(number))


def _minus(a: Expression, b: Expression) -> Expression:
    return apply("-", a, b)


def _times(a: Expression, number: float) -> Expression:
    return apply("*", a, float(number))


def _quotient(a: Expression, number: float) -> Expression:
    return apply("floor", apply("/", a, float(number)))


def _remainder(a: Expression, number: float) -> Expression:
    return _minus(a, _times(_quotient(a, number), number))


def _constant(value: float | Expression) -> Expression:
    return float(value) if isinstance(value, int) else value


def _where_known(expression: Expression, *operands: Expression) -> Expression:
    """Return an expression that is missing where one of the operands is: not every function takes a missing value."""
    checks = [apply("isNotMissing", operand) for operand in operands if not isinstance(operand, float)]
    for check in reversed(checks):
        expression = apply("if", check, expression)
    return expression


def _choose(comparison: str, a: Expression, b: Expression) -> Expression:
    return _where_known(apply("if", apply(comparison, a, b), a, b), a, b)


def _compute_where(comparison: str, a: Expression, bound: float, expression: Expression) -> Expression:
    return _where_known(apply("if", apply(comparison, a, bound), expression), a)


_OPERATORS: Mapping[str, Callable[..., Expression]] = {
    "+": lambda *terms: reduce(lambda a, b: apply("+", a, b), terms),
    "-": lambda a: apply("-", 0.0, a),
    "*": lambda *factors: reduce(lambda a, b: apply("*", a, b), factors),
    "/": lambda a, b: _compute_where("notEqual", b, 0.0, apply("/", a, b)),
    "LN": lambda a: _compute_where("greaterThan", a, 0.0, apply("ln", a)),
    "EXP": lambda a: _compute_where("lessThan", a, _LARGEST_EXPONENT, apply("exp", a)),
    "SQRT": lambda a: _compute_where("greaterOrEqual", a, 0.0, apply("sqrt", a)),
    "ABS": lambda a: _where_known(apply("abs", a), a),
    "LEAST": lambda a, b: _choose("lessThan", a, b),
    "GREATEST": lambda a, b: _choose("greaterThan", a, b),
    "COALESCE": lambda a, b: apply("if", apply("isMissing", a), b, a),
}
IDS: Mapping[type, Callable[[PmmlFields, Any], None]] = {
    Bucket: PmmlFields._bucket,
    CategoryId: PmmlFields._category_id,
    DatePart: PmmlFields._date_part,
    Vocabulary: PmmlFields._vocabulary,
}
