"""Columns of the table as numbers, parts of times, and ids: `edl.features.arrays` and `categories` in SQL.

A number that is NULL or not finite is NULL; an id is never NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from edl.errors import SemanticError
from edl.spec import (
    Bucket,
    Category,
    CategoryId,
    Computed,
    Cross,
    DatePart,
    HashBucket,
    Source,
    Vocabulary,
    source_columns,
)
from edl.spec.computed import DEEPEST, depth, is_portable
from sqlflow_edl.extensions.model_sql.computed import write_operator
from sqlflow_edl.extensions.model_sql.dialects import TARGETS, Target
from sqlflow_edl.extensions.model_sql.expressions import (
    Expression,
    case,
    double,
    finite_or_null,
    is_between,
    is_null,
    number,
    numbered_name,
    own_column,
    user_column,
    whole,
)
from sqlflow_edl.extensions.model_sql.stages import Stages

_FIRST = {"month": 1, "day": 1, "weekday": 1, "hour": 0, "minute": 0}  # form of a part -> its value of id 0
_OF_JSON = "is computed in Python, and written in no SQL"
_WORDS = {
    "HashBucket": "HASH",
    "Cross": "CROSS",
    "ListOf": "SPARSE",
    "NGrams": "NGRAMS",
    "Concat": "CONCAT",
    "Vector": "DENSE",
    "Periodic": "PERIODIC",
    "Vocabulary": "VOCABULARIZE",
    "CategoryId": "CATEGORY_ID",
}
_WAYS_OUT = {
    "HashBucket": "train with VOCABULARIZE in place of HASH",
    "Cross": "train without CROSS, or join the columns to one text in the query: a || '/' || b",
    "Periodic": "train with PLE in place of PERIODIC",
}
_OTHERWISE = "export it as ONNX (-o m.onnx), or predict with sqlflow"


def unsupported_column_error(
    column: object, names: Sequence[str], reason: str = "has no form in SQL"
) -> SemanticError:
    """Return the error of a feature or category that cannot be written, with the nearest way out."""
    kind = type(column).__name__
    return SemanticError(
        f"{_WORDS.get(kind, kind)} of column {' and '.join(names)} {reason}",
        hint=_WAYS_OUT.get(kind, _OTHERWISE),
    )


def _of_table(category: Vocabulary | HashBucket) -> str:
    """Return the column of the category. Raises SemanticError for a value in a JSON text."""
    if not isinstance(category.column, str):
        raise unsupported_column_error(category, tuple(source_columns(category)), _OF_JSON)
    return category.column


class Columns:
    """Columns of the table by name, with their types in training. Adds to three stages what features ask for."""

    def __init__(self, target: Target, schema: pa.Schema, stages: Stages) -> None:
        self.target = target
        self._schema = schema
        self._numbers_of = {name: place for place, name in enumerate(schema.names)}
        self.given = stages.stage("given")
        self._numbers = stages.stage("numbers")
        self._computed_stages = [stages.stage(f"computed_{level}") for level in range(1, DEEPEST + 1)]
        self._hashes = stages.stage("hashes")
        self._ids = stages.stage("ids")
        self._hashed_ids = stages.stage("hashed_ids")
        self._crossed = stages.stage("crossed")
        self._categories: dict[Category, str] = {}
        self._computed: dict[Computed, str] = {}

    def raw(self, name: str) -> exp.Column:
        """Return the column as it is."""
        return self.given.add(numbered_name("c", self._numbers_of[name], name), user_column(name))

    def number(self, source: Source) -> exp.Column:
        """Return the column as a double, NULL if it is not finite."""
        if isinstance(source, str):
            name = numbered_name("n", self._numbers_of[source], source)
            return self._numbers.add(name, self._as_number(self.raw(source), source))
        if not is_portable(source):
            raise SemanticError(f"{source} {_OF_JSON}", hint=_OTHERWISE)
        if source not in self._computed:
            operands = [
                number(operand) if isinstance(operand, float) else self.number(operand)
                for operand in source.operands
            ]
            self._computed[source] = numbered_name("e", len(self._computed), str(source))
            stage = self._computed_stages[depth(source) - 1]
            stage.add(self._computed[source], write_operator(self.target, source.operator, operands))
        return own_column(self._computed[source])

    def reach(self, source: Source) -> float:
        """Return a bound of the size of the column's numbers."""
        if not isinstance(source, str):
            return np.inf
        kind = self._schema.field(source).type
        return np.inf if types.is_floating(kind) else 1e38 if types.is_decimal(kind) else 1e20

    def part(self, name: str, part: str) -> exp.Column:
        """Return a part of a time as an integer: January is month 1, Monday weekday 1."""
        kind = self._schema.field(name).type
        column: Expression = self.raw(name)
        if types.is_timestamp(kind) and kind.tz:
            column = self.target.form("utc", column) or column
        expression = self.target.form(part, column)
        if expression is None or not types.is_temporal(kind):
            raise SemanticError(
                f"the {part} of column {name} has no form in SQL of {self.target.name}", hint=_OTHERWISE
            )
        if types.is_date(kind) and part in ("hour", "minute"):
            expression = case([(is_null(column), exp.Null())], whole(0))
        name_of_part = numbered_name("d", self._numbers_of[name], name, part)
        return self._numbers.add(name_of_part, exp.cast(expression, exp.DataType.Type.BIGINT))

    def id(self, category: Category) -> exp.Column:
        """Return the id of a category."""
        if category not in self._categories:
            make = IDS.get(type(category))
            names = tuple(source_columns(category))
            if make is None:
                raise unsupported_column_error(category, names)
            expression = make(self, category)
            name = numbered_name("i", len(self._categories), names[0])
            stage = self._crossed if category.made_of == "columns" else self._ids
            stage.add(name, expression)
            self._categories[category] = name
        return own_column(self._categories[category])

    # Numbers -------------------------------------------------------------------------------------------------

    def _as_number(self, column: Expression, name: str) -> Expression:
        kind = self._schema.field(name).type
        if types.is_null(kind):
            return double(exp.Null())
        if types.is_boolean(kind):
            return self.target.real(case([(column, number(1)), (exp.Not(this=column.copy()), number(0))]))
        if types.is_temporal(kind):
            return self._seconds(column, name, kind)
        if types.is_floating(kind):
            return finite_or_null(self.target, double(column))
        if types.is_integer(kind) or types.is_decimal(kind):
            return double(column)
        raise SemanticError(f"column {name} is of type {kind}, and SQL needs a number")

    def _seconds(self, column: Expression, name: str, kind: pa.DataType) -> Expression:
        form = "date" if types.is_date(kind) else "time" if types.is_time(kind) else "seconds"
        expression = self.target.form(form, column)
        if expression is None or types.is_duration(kind):
            raise SemanticError(
                f"column {name} is of type {kind}, whose seconds have no form in SQL of {self.target.name}",
                hint="train with its parts: YEAR, MONTH, DAY, WEEKDAY, HOUR or MINUTE",
            )
        return double(expression)

    # Ids -----------------------------------------------------------------------------------------------------

    def _bucket(self, category: Bucket) -> Expression:
        value = self.number(category.column)
        below = [
            (exp.LT(this=value.copy(), expression=number(bound)), whole(place))
            for place, bound in enumerate(category.boundaries)
        ]
        missing = (is_null(value), whole(category.size))
        return case([missing, *below], whole(len(category.boundaries)))

    def _category_id(self, category: CategoryId) -> Expression:
        if isinstance(category.column, str):
            kind = self._schema.field(category.column).type
            if not (_is_number(kind) or types.is_integer(kind) or types.is_boolean(kind)):
                raise unsupported_column_error(
                    category, [category.column], f"of type {kind} has no form in SQL"
                )
        value = self.number(category.column)
        inside = is_between(value, number(0), number(category.size - 1))
        floor = self.target.form("floor", value) or exp.Floor(this=value.copy())
        is_whole = exp.EQ(this=value.copy(), expression=floor)
        number_value = exp.cast(value.copy(), exp.DataType.Type.BIGINT)
        is_id = exp.and_(inside, is_whole)
        return case([*_missing(category, value), (is_id, number_value)], whole(category.unseen_id))

    def _date_part(self, category: DatePart) -> Expression:
        value, first = self.part(category.column, category.part), _FIRST[category.part]
        low, high = whole(first), whole(first + category.size - 1)
        shifted = exp.Sub(this=value.copy(), expression=whole(first)) if first else value.copy()
        return case([(is_between(value, low, high), shifted)], whole(category.size))

    def _vocabulary(self, category: Vocabulary) -> Expression:
        name = _of_table(category)
        kind = self._schema.field(name).type
        places = dict(zip(category.values, range(category.size), strict=True))
        unseen = whole(category.unseen_id)
        if types.is_boolean(kind):
            column = self.raw(name)
            yes, no = (
                places.get(text, places.get(int(text == "true"), category.unseen_id))
                for text in ("true", "false")
            )
            return case(
                [(column, whole(yes)), (exp.Not(this=column.copy()), whole(no))], whole(category.size)
            )
        if types.is_integer(kind) or (isinstance(category.values[0], int) and _is_number(kind)):
            levels = [(_as_integer(value), place) for value, place in places.items()]
            branches = [(whole(value), whole(place)) for value, place in levels if value is not None]
            place_or_unseen = case(branches, unseen, self.raw(name)) if branches else unseen
            value = self.number(name) if _is_number(kind) else self.raw(name)
            return _with_null(category, value, place_or_unseen)
        if not isinstance(category.values[0], str) or not (
            types.is_string(kind) or types.is_large_string(kind)
        ):
            raise unsupported_column_error(category, [name], f"of type {kind} has no form in SQL")
        text = self.target.form("text", self.raw(name)) or self.raw(name)
        place_or_unseen = case(
            [(exp.Literal.string(str(value)), whole(place)) for value, place in places.items()], unseen, text
        )
        return _with_null(category, self.raw(name), place_or_unseen)

    def _hash_bucket(self, category: HashBucket) -> Expression:
        name = _of_table(category)
        return _bucket_of(category, [_is_known(self.raw(name))], self._hash(category, name, [name]))

    def _cross(self, category: Cross) -> Expression:
        """Return the bucket of the hashes; each hash is mixed with the hashes before it."""
        hashed, conditions = whole(0), []
        names = tuple(source_columns(category))
        for part in category.columns:
            if isinstance(part, str):
                part_hash = self._hash(category, part, names)
                conditions.append(_is_known(self.raw(part)))
            else:
                part_id = self.id(part)
                text_of_id = exp.cast(part_id.copy(), exp.DataType.Type.TEXT)
                part_hash = self._hashed_ids.add(
                    f"h{part_id.name}", self._hash_of(category, text_of_id, names)
                )
                conditions.append(exp.LT(this=part_id.copy(), expression=whole(part.size)))
            hashed = self.target.form("mix", exp.Add(this=hashed, expression=part_hash)) or part_hash
        return _bucket_of(category, conditions, hashed)

    def _hash(self, category: HashBucket | Cross, name: str, names: Sequence[str]) -> exp.Column:
        """Return the hash of a column's text."""
        kind, text = self._schema.field(name).type, cast("Expression", self.raw(name))
        if types.is_integer(kind) or types.is_boolean(kind):
            text = exp.cast(text, exp.DataType.Type.TEXT)
        elif not (types.is_string(kind) or types.is_large_string(kind)):
            raise unsupported_column_error(category, names, f"of type {kind} has no form in SQL")
        hash_name = numbered_name("h", self._numbers_of[name], name)
        return self._hashes.add(hash_name, self._hash_of(category, text, names))

    def _hash_of(self, category: HashBucket | Cross, text: Expression, names: Sequence[str]) -> Expression:
        hashed = self.target.form("hash", text)
        if hashed is None:
            able = " and ".join(dialect for dialect, target in TARGETS.items() if "hash" in target.forms)
            raise unsupported_column_error(
                category, names, f"has no exact form in SQL of {self.target.name}, but of {able}"
            )
        return hashed


def _bucket_of(
    category: HashBucket | Cross, conditions: Sequence[Expression], hashed: Expression
) -> Expression:
    bucket = exp.cast(exp.Mod(this=hashed, expression=whole(category.size)), exp.DataType.Type.BIGINT)
    return case([(exp.and_(*conditions), bucket)], whole(category.size))


def _missing(category: Category, column: exp.Column) -> list[tuple[Expression, Expression]]:
    """Return the branch of NULL, or none if unseen values count as NULL."""
    return [(is_null(column), whole(category.size))] if category.unseen else []


def _with_null(category: Category, column: exp.Column, expression: Expression) -> Expression:
    """Return the id of NULL, or the expression of other values."""
    branches = _missing(category, column)
    return case(branches, expression) if branches else expression


def _is_known(column: Expression) -> Expression:
    return exp.Not(this=is_null(column))


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_floating(kind) or types.is_decimal(kind))


def _as_integer(value: str | int) -> int | None:
    """Return the integer that the value spells, or None if it spells none."""
    text = str(value)
    return int(text) if text.removeprefix("-").isdecimal() and str(int(text)) == text else None


IDS: Mapping[type, Callable[[Columns, Any], Expression]] = {
    Bucket: Columns._bucket,
    Cross: Columns._cross,
    HashBucket: Columns._hash_bucket,
    CategoryId: Columns._category_id,
    DatePart: Columns._date_part,
    Vocabulary: Columns._vocabulary,
}
