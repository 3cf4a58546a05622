"""Rows that cannot be trained on, as they have no label, no weight or no valid JSON.

`train.on_bad_row = skip` leaves them out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from edl.spec.computed import json_columns
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.rows.row_filter import BEHIND
from sqlflow_edl.analysis.schema import Schema

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

ON_BAD_ROW, SKIP = "train.on_bad_row", "skip"

# elsewhere it is an error
_VALID_JSON = {"duckdb": "json_valid", "sqlite": "json_valid", "mysql": "JSON_VALID"}
# NaN is above all other numbers where a comparison with it is not false
_FINITE = f"{{0}} BETWEEN -{sys.float_info.max!r} AND {sys.float_info.max!r}"


@dataclass(frozen=True, slots=True)
class BadRows:
    """Rows to leave out: those without a value of one of the columns, of which one of the conditions is not true.

    Without columns, none are left out. listing: the condition of a query that lists them, but for NaN and infinities.
    """

    columns: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    listing: str = ""

    @classmethod
    def of(
        cls,
        settings: TrainSettings,
        schema: Schema,
        columns: tuple[str, ...],
        computed: Iterable[spec.Computed],
    ) -> Self:
        """Return the bad rows of a training. columns: the labels and the weight. computed: columns of expressions."""
        if settings.get(ON_BAD_ROW) != SKIP:
            return cls()
        dialect = schema.dialect
        conditions = [
            condition for column in columns for condition in _usable_conditions(column, schema, dialect)
        ]
        valid = _VALID_JSON.get(dialect, "")
        json_operands = (column for operand in computed for column in json_columns(operand))
        texts = tuple(dict.fromkeys(json_operands)) if valid else ()
        names = [expressions.name(text, dialect) for text in texts]
        conditions += (f"({name} IS NULL OR {valid}({name}))" for name in names)
        listed = [f"{expressions.name(column, dialect)} IS NULL" for column in columns]
        listed += (f"NOT {valid}({name})" for name in names)
        return cls((*columns, *(f"JSON in {text}" for text in texts)), tuple(conditions), " OR ".join(listed))

    def among(self, query: str) -> str:
        """Return a query of two numbers: how many of the rows of the query are bad, and how many there are."""
        bad = f"count(CASE WHEN {' AND '.join(self.conditions)} THEN NULL ELSE 1 END)"
        return f"SELECT {bad} AS bad, count(*) AS total FROM (\n{query}{BEHIND}"

    def note(self, bad: int, total: int) -> str:
        lacking = " or no ".join(self.columns)
        return f"{bad:,} of {total:,} rows have no {lacking} and are left out: WHERE {self.listing}"


def check(settings: TrainSettings, schema: Schema, label: str, errors: list[SQLFlowError]) -> None:
    """Add an error if a training has no such rows, or needs every row in its place."""
    if settings.get(ON_BAD_ROW) != SKIP:
        return
    span = settings.span(ON_BAD_ROW)
    if not label:
        message = f"{ON_BAD_ROW} = {SKIP} leaves out rows without a label, and this model has none"
        errors.append(SemanticError(message, span=span, hint="leave it out"))
    elif settings.get("train.shuffle") is False:
        message = f"train.shuffle = FALSE keeps the order of the rows, which {ON_BAD_ROW} = {SKIP} may change"
        condition = expressions.has_value(label, schema.dialect, has_nan=schema.has_nan(label))
        hint = f"leave {ON_BAD_ROW} out, and add WHERE {condition} to the SELECT"
        errors.append(SemanticError(message, span=span, hint=hint))


def _usable_conditions(column: str, schema: Schema, dialect: str) -> Iterator[str]:
    """Yield the conditions of a value that can be trained on."""
    name = expressions.name(column, dialect)
    yield f"{name} IS NOT NULL"
    if schema.has_nan(column):
        yield _FINITE.format(name)
