"""Drafts of the columns of a training: of those that COLUMN names, and of the others by their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from edl import spec
from edl.errors import SQLFlowError
from edl.features.text_numbers import PATTERNS
from edl.spec.computed import table_columns
from sqlflow_edl.analysis import forecasts
from sqlflow_edl.analysis.columns.binning import bins_of_each
from sqlflow_edl.analysis.columns.decisions import Decision
from sqlflow_edl.analysis.columns.derive import derive, numbers_in_text
from sqlflow_edl.analysis.columns.drafts import Draft
from sqlflow_edl.analysis.columns.inputs import written_input
from sqlflow_edl.analysis.columns.items import Resolver
from sqlflow_edl.analysis.schema import ColumnType
from sqlflow_edl.analysis.train_settings import TrainSettings
from sqlflow_edl.syntax import ast

TEXT_NUMBERS = "train.text_numbers"


def draft_written_columns(
    statement: ast.Statement, settings: TrainSettings, resolver: Resolver
) -> list[Draft]:
    """Return the drafts of the COLUMN clauses."""
    drafts: list[Draft] = []
    for clause in statement.columns:
        name = written_input(clause, settings.choice.example.architecture.inputs, resolver.errors)
        drafts += (replace(draft, input=name) for draft in resolver.items(clause.items))
        for left_out in clause.without:
            try:
                resolver.schema.resolve(left_out)
            except SQLFlowError as error:
                resolver.errors.append(error)
    return drafts


def draft_other_columns(
    statement: ast.Statement,
    settings: TrainSettings,
    resolver: Resolver,
    drafts: Sequence[Draft],
    groups: Mapping[str, str],
    forecast: spec.Forecast | None,
    decisions: list[Decision],
) -> list[Draft]:
    """Return the drafts of the columns that `drafts` do not mention.

    groups: columns of groups -> why they are left out. decisions: those on columns without drafts are added.
    """
    operands = {column for source in resolver.computed.values() for column in table_columns(source)}
    mentioned = operands | {column for draft in drafts for column in draft.columns}
    schema, all_drafts = resolver.schema, []
    names = () if any(clause.only for clause in statement.columns) else schema.names
    names = tuple(column for column in names if column not in mentioned)
    numbers = [column for column in names if schema.type(column) is ColumnType.NUMBER]
    bins = bins_of_each(len(numbers)) if settings.choice.example.encodes else 0
    for column in names:
        if why := groups.get(column):
            note = f"{column}, of the groups, is left out: {why}; name it in COLUMN to use it"
            resolver.notes.append(note)
        elif column not in resolver.reserved:
            column_drafts = forecasts.drafts(forecast, column, schema) if forecast else None
            if column_drafts is None:
                column_drafts = derive(
                    column,
                    schema,
                    resolver.notes,
                    statement.select_span,
                    bins=bins,
                    trees=settings.is_trees,
                )
                if schema.type(column) is ColumnType.TEXT and settings.get(TEXT_NUMBERS) == "convert":
                    column_drafts = _numbers_in_text(column, column_drafts, resolver, bins)
                if not column_drafts:
                    reason, hint = schema.why_unusable(column)
                    decisions.append(Decision((column,), f"it {reason}; {hint}"))
                    resolver.notes.append(decisions[-1].note)
            all_drafts += column_drafts
    return all_drafts


def _numbers_in_text(column: str, category: Sequence[Draft], resolver: Resolver, bins: int) -> list[Draft]:
    """Return the drafts of a column of texts; statistics decide whether the texts are numbers."""
    names = {decimal: resolver.number_in_text(column, decimal) for decimal in PATTERNS}
    numbers = {
        decimal: resolver.over_the_table(derive(name, resolver.schema, [], None, bins=bins))
        for decimal, name in names.items()
    }
    return numbers_in_text(column, category, numbers)
