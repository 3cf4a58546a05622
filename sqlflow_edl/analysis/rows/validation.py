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
from sqlflow_edl.errors.spans import instead, placed
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.settings.dictionary import Resolved

FRACTION, SELECT, TEST = "validation.fraction", "validation.select", "validation.test_fraction"
FEWEST_ROWS = 100  # with fewer rows there are no validation rows by default
DEFAULT_FRACTION = 0.1


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Validation rows of a statement: those of `query`, or else a `fraction` of the training query's rows.

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

    def placed(self) -> AbstractContextManager[None]:
        """Return a context that sets the source span of database errors in the query."""
        return placed(self.span) if self.in_text else instead(self.span)


def held_out_rows(
    statement: ast.Statement,
    resolved: Mapping[str, Resolved],
    errors: list[SQLFlowError],
    *,
    none: bool = False,
) -> HeldOut:
    """Return the written validation rows; add an error if they are written twice. none: the model takes none."""
    found = []
    if none:
        if statement.validate is not None:
            message = "nothing is validated where nothing is trained"
            errors.append(SemanticError(message, span=statement.validate.span, hint="leave VALIDATE out"))
        return HeldOut(fraction=0.0)
    if written := statement.validate:
        span = written.query_span if written.query is not None else written.span
        found.append(HeldOut(written.query or "", written.fraction, span, in_text=True))
    if FRACTION in resolved:
        given = resolved[FRACTION]
        found.append(HeldOut(fraction=float(given.value), span=given.written.span))  # type: ignore[arg-type]
    if SELECT in resolved:
        given = resolved[SELECT]
        found.append(HeldOut(str(given.value).strip().rstrip(";"), span=given.span))
    if len(found) > 1:
        errors.append(
            SemanticError("the validation rows are given twice", span=found[1].span, hint="keep one of them")
        )
    held_out = found[0] if found else HeldOut()
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


def check_columns(held_out: HeldOut, own: Schema, read: Iterable[str], given: Schema) -> list[SQLFlowError]:
    """Return errors for columns that are read and that the validation query lacks.

    own: columns of the training query. given: columns of the validation query.
    """
    errors: list[SQLFlowError] = []
    for column in dict.fromkeys(read):
        found = given.find(column)
        if found is None:
            message, hint = f"the validation rows lack the column {column}", did_you_mean(column, given.names)
        elif given.type(found) is not own.type(column) and not given.is_null(found):
            here, there = own.type(column).words, given.type(found).words
            message, hint = f"{column} is {here} in training and {there} in the validation rows", "cast it"
        elif given.has_time_zone(found) is not own.has_time_zone(column):
            here, there = (
                "with a time zone" if each else "without a time zone"
                for each in (own.has_time_zone(column), given.has_time_zone(found))
            )
            message = f"{column} is a timestamp {here} in training and {there} in the validation rows"
            hint = "select it AT TIME ZONE 'UTC' in one of them, for UTC the zone in which it is written"
        else:
            continue
        errors.append(SemanticError(message, span=held_out.span, hint=hint or given.known()))
    return errors


def rows(found: Statistics) -> int:
    """Return the number of validation rows by the statistics of their labels."""
    return next((each.rows for each in found.values()), 0)


def check_labels(held_out: HeldOut, label: spec.Label, found: Statistics, schema: Schema) -> None:
    """Raise SemanticError unless the validation query has rows and all its labels occur in the training rows.

    Without a validation query there is nothing to check.
    """
    if not held_out.query:
        return
    if not rows(found):
        raise SemanticError("the validation query yields no rows", span=held_out.span)
    for each in spec.each_label(label):
        if not isinstance(each, spec.Unlabelled):
            _check_label(held_out, each, found[each.column], schema)


def _check_label(held_out: HeldOut, label: spec.Label, found: ColumnStatistics, schema: Schema) -> None:
    if found.nulls:
        has_nan = schema.has_nan(label.column)
        condition = expressions.has_value(label.column, schema.dialect, has_nan=has_nan)
        lacking = "NULL, NaN or infinite" if has_nan else "NULL"
        raise SemanticError(
            f"{label.column} is {lacking} in {found.nulls:,} of {found.rows:,} validation rows",
            span=held_out.span,
            hint=f"add WHERE {condition} to the query",
        )
    if not isinstance(label, spec.ClassLabel):
        return
    counts = dict(zip(found.counts.values, found.counts.counts, strict=True)) if found.counts else {}
    unknown = [value for value in counts if value not in label.classes]
    if unknown or found.counts is None:
        shown = ", ".join(map(repr, unknown[:3])) + (", …" if len(unknown) > 3 else "")
        near = did_you_mean(str(unknown[0]), [str(value) for value in label.classes]) if unknown else None
        raise SemanticError(
            f"{label.column} has classes in the validation rows that no training row has: {shown or 'too many'}",
            span=held_out.span,
            hint=near or "select training rows of every class",
        )
