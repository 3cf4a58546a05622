"""Rows that are new since a model's last training: `train.incremental_column` names the column that grows with them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from edl import spec
from edl.errors import SemanticError, Span, SpecError, SQLFlowError
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.rows.row_filter import BEHIND
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.settings.attribute_dictionary import Dictionary
from sqlflow_edl.analysis.settings.attributes import TRAIN
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

INCREMENTAL = "train.incremental_column"
_TRAIN = Dictionary(TRAIN)
_TIMES = (ColumnType.DATE, ColumnType.TIMESTAMP)


def are_in(statement: ast.Statement) -> bool:
    """Return True if the statement trains on new rows alone."""
    rows = (_TRAIN.find(attribute.key) for attribute in statement.attributes)
    return any(row is not None and row.name == INCREMENTAL for row in rows)


@contextmanager
def hint_at_increments(select: str) -> Iterator[None]:
    """Say how a training reads new rows only, where the database knows no column LAST, as in `WHERE id > LAST`."""
    try:
        yield
    except SQLFlowError as error:
        if error.span and select[error.span.start : error.span.end].upper() == "LAST":
            error.hint = f"WITH {INCREMENTAL} = id trains on the rows that are new since the last training"
        raise


def column(settings: TrainSettings, schema: Schema, others: set[str], errors: list[SQLFlowError]) -> str:
    """Return the column that grows with new rows, empty without one; add an error for an unusable one.

    others: columns with another part in the training.
    """
    if settings.get(INCREMENTAL) is None:
        return ""
    taken = "cannot tell which rows are new: it is the label or the weight"
    name, error = settings.column(INCREMENTAL, schema, others, taken)
    wrong, hint = "", None
    if settings.get("train.shuffle") is False:
        wrong = f"train.shuffle = FALSE keeps the order of the rows, which {INCREMENTAL} may change"
        hint = "leave one of them out"
    elif error:
        errors.append(error)
    elif schema.type(name) in _TIMES:
        if schema.dialect == "sqlite":
            wrong, hint = (
                f"{name} is a time, which SQLite stores as a text of any form",
                "name a whole number",
            )
        elif getattr(schema.arrow.field(name).type, "tz", None):
            wrong, hint = f"{name} is a time with a zone", "select it without one, or name a whole number"
    elif not schema.is_integer(name):
        wrong = f"{name} is {schema.type(name).words}, and new rows are told by a whole number or a time"
        hint = "name another column"
    if wrong:
        errors.append(SemanticError(wrong, span=settings.span(INCREMENTAL), hint=hint))
    return name


def select_new_rows(query: spec.Query, column: str, last: spec.Query | None) -> spec.Query:
    """Return the query of the rows with greater values of the column than in the last training.

    last: the query of that training, if there was one.
    """
    if not column:
        return query
    seen = last.increment if last is not None else None
    after = seen.until if seen is not None and seen.column == column else None
    return msgspec.structs.replace(query, increment=spec.Increment(column, after))


def greatest_query(increment: spec.Increment, schema: Schema, select: str) -> str:
    """Return a query of one value, `last`: the greatest one of the column among the rows that are new."""
    name = expressions.name(increment.column, schema.dialect)
    above = " AND ".join(conditions(increment, schema))
    where = f" WHERE {above}" if above else ""
    return f"SELECT max({name}) AS last FROM (\n{select}{BEHIND}{where}"


def bound_rows(increment: spec.Increment, last: object, span: Span | None) -> spec.Increment:
    """Return the increment up to `last`, the value of `greatest_query`: later rows are left to the next training.

    span: of the attribute. Raises SemanticError if no row is new.
    """
    if last is None:
        raise SemanticError(
            f"no row has {increment.column} above {increment.after}, up to which the model was trained"
            if increment.after is not None
            else f"{increment.column} is NULL in all rows",
            span=span,
            hint="train when rows have been added",
        )
    return msgspec.structs.replace(increment, until=_plain(last))


def conditions(increment: spec.Increment, schema: Schema) -> Iterator[str]:
    """Yield the conditions of the rows of the increment."""
    name, kind = expressions.name(increment.column, schema.dialect), schema.type(increment.column)
    for operator, value in ((">", increment.after), ("<=", increment.until)):
        if value is not None:
            yield f"{name} {operator} {_literal(value, kind)}"


def increment_note(increment: spec.Increment) -> str:
    """Return the words for the rows that are trained on."""
    if increment.after is None:
        return f"all rows are trained on, up to {increment.column} {increment.until}"
    return f"rows with {increment.column} above {increment.after}, up to {increment.until}, are trained on"


def _literal(value: int | str, kind: ColumnType) -> str:
    """Return the value as SQL. Raises SpecError for another form than its kind has: a stored value may be any text."""
    try:
        if kind is ColumnType.TIMESTAMP:
            return f"TIMESTAMP '{dt.datetime.fromisoformat(str(value)).isoformat(' ')}'"
        return f"DATE '{dt.date.fromisoformat(str(value))}'" if kind is ColumnType.DATE else str(int(value))
    except ValueError:
        raise SpecError(
            f"the model was trained up to {value!r}, which cannot be a value of a column that is {kind.words}",
            hint=f"leave {INCREMENTAL} out once",
        ) from None


def _plain(value: object) -> int | str:
    if isinstance(value, int):
        return value
    return value.isoformat(" ") if isinstance(value, dt.datetime) else str(value)
