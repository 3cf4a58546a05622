"""Validation rows: a share of the query's rows, or the rows of a query of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.columns.drafts import Statistics
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics
from sqlflow_edl.errors.spans import shift_spans, use_place_of
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved

FRACTION, SELECT, TEST = "validation.fraction", "validation.select", "validation.test_fraction"
FEWEST_ROWS = 100  # with fewer rows there are no validation rows by default
DEFAULT_FRACTION = 0.1


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Validation rows of a statement: the rows of `query`, or else a `fraction` of the training query's rows.
    fraction: None for the default. span: of the query or fraction. in_text: the query stands there byte for byte, not
    in a string. test: share of the rows that are not even validated on.
    """

    query: str = ""
    fraction: float | None = None
    span: Span | None = None
    in_text: bool = False
    test: float = 0.0

    @property
    def share(self) -> float | None:
        """Share of the rows that are not trained on; None for the default."""
        if self.fraction is None and not self.test:
            return None
        return (DEFAULT_FRACTION if self.fraction is None else self.fraction) + self.test

    def rows(self, total: int) -> int:
        """Return the number of rows among `total` that are not trained on, never all.

        None are if the validation rows have a query of their own.
        """
        share = self.share
        if share is None:
            share = DEFAULT_FRACTION if total >= FEWEST_ROWS else 0.0
        return 0 if self.query else min(int(total * share + 0.5), max(total - 1, 0))

    def test_rows(self, apart: int) -> int:
        """Return the number of test rows among the rows that are not trained on; they are the last of them."""
        return int(apart * self.test / (self.share or 1.0) + 0.5)

    def locate_errors(self) -> AbstractContextManager[None]:
        """Return a context that sets the source span of database errors in the query."""
        return shift_spans(self.span) if self.in_text else use_place_of(self.span)


def held_out_rows(
    statement: ast.Statement,
    resolved: Mapping[str, Resolved],
    errors: list[SQLFlowError],
    *,
    none: bool = False,
    usual: float | None = None,
) -> HeldOut:
    """Return the written validation rows; add an error if they are written twice.

    none: the model takes none. usual: their share where none are written.
    """
    ways = []
    if none:
        if statement.validate is not None:
            message = "nothing is validated where nothing is trained"
            errors.append(SemanticError(message, span=statement.validate.span, hint="leave VALIDATE out"))
        return HeldOut(fraction=0.0)
    if clause := statement.validate:
        span = clause.query_span if clause.query is not None else clause.span
        ways.append(HeldOut(clause.query or "", clause.fraction, span, in_text=True))
    if FRACTION in resolved:
        attribute = resolved[FRACTION]
        ways.append(HeldOut(fraction=float(attribute.value), span=attribute.written.span))  # type: ignore[arg-type]
    if SELECT in resolved:
        attribute = resolved[SELECT]
        ways.append(HeldOut(str(attribute.value).strip().rstrip(";"), span=attribute.span))
    if len(ways) > 1:
        errors.append(
            SemanticError("the validation rows are given twice", span=ways[1].span, hint="keep one of them")
        )
    held_out = ways[0] if ways else HeldOut(fraction=usual)
    if TEST not in resolved:
        return held_out
    if held_out.query:
        errors.append(
            SemanticError(
                f"{TEST} is a share of the query's rows, and the validation rows have a query of their own",
                span=resolved[TEST].written.span,
                hint="leave it out, and EVALUATE the model on the rows to test it on",
            )
        )
    return replace(held_out, test=float(resolved[TEST].value))  # type: ignore[arg-type]


def check_columns(
    held_out: HeldOut, training_schema: Schema, read: Iterable[str], validation_schema: Schema
) -> list[SQLFlowError]:
    """Return errors for columns that are read and that the validation query lacks.

    training_schema: columns of the training query. validation_schema: columns of the validation query.
    """
    errors: list[SQLFlowError] = []
    for column in dict.fromkeys(read):
        name = validation_schema.find(column)
        if name is None:
            message, hint = (
                f"the validation rows lack the column {column}",
                did_you_mean(column, validation_schema.names),
            )
        elif validation_schema.type(name) is not training_schema.type(
            column
        ) and not validation_schema.is_null(name):
            here, now = training_schema.type(column).words, validation_schema.type(name).words
            message, hint = f"{column} is {here} in training and {now} in the validation rows", "cast it"
        elif validation_schema.has_time_zone(name) is not training_schema.has_time_zone(column):
            here, now = (
                "with a time zone" if has_zone else "without a time zone"
                for has_zone in (training_schema.has_time_zone(column), validation_schema.has_time_zone(name))
            )
            message = f"{column} is a timestamp {here} in training and {now} in the validation rows"
            hint = "select it AT TIME ZONE 'UTC' in one of them, for UTC the zone in which it is written"
        else:
            continue
        errors.append(
            SemanticError(message, span=held_out.span, hint=hint or validation_schema.suggest_columns())
        )
    return errors


def rows(statistics: Statistics) -> int:
    """Return the number of validation rows by the statistics of their labels."""
    return next((column_statistics.rows for column_statistics in statistics.values()), 0)


def check_labels(held_out: HeldOut, label: spec.Label, statistics: Statistics, schema: Schema) -> None:
    """Raise SemanticError unless the validation query has rows and all its labels occur in the training rows.

    Without a validation query there is nothing to check.
    """
    if not held_out.query:
        return
    if not rows(statistics):
        raise SemanticError("the validation query yields no rows", span=held_out.span)
    for one_label in spec.each_label(label):
        if not one_label.is_unsupervised:
            _check_label(held_out, one_label, statistics[one_label.column], schema)


def _check_label(
    held_out: HeldOut, label: spec.Label, column_statistics: ColumnStatistics, schema: Schema
) -> None:
    if column_statistics.nulls:
        has_nan = schema.has_nan(label.column)
        condition = expressions.has_value(label.column, schema.dialect, has_nan=has_nan)
        lacking = "NULL, NaN or infinite" if has_nan else "NULL"
        raise SemanticError(
            f"{label.column} is {lacking} in {column_statistics.nulls:,} of {column_statistics.rows:,} validation rows",
            span=held_out.span,
            hint=f"add WHERE {condition} to the query",
        )
    if not label.has_classes:
        return
    counts = (
        dict(zip(column_statistics.counts.values, column_statistics.counts.counts, strict=True))
        if column_statistics.counts
        else {}
    )
    unknown = [value for value in counts if value not in label.classes]
    if unknown or column_statistics.counts is None:
        shown = ", ".join(map(repr, unknown[:3])) + (", …" if len(unknown) > 3 else "")
        near = did_you_mean(str(unknown[0]), [str(value) for value in label.classes]) if unknown else None
        raise SemanticError(
            f"{label.column} has classes in the validation rows that no training row has: {shown or 'too many'}",
            span=held_out.span,
            hint=near or "select training rows of every class",
        )
