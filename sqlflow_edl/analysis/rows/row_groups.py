"""Groups of rows that a model ranks: `train.group_column`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.analysis.rows.validation import TEST, HeldOut
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

COLUMN, SHUFFLE = "train.group_column", "train.shuffle"


def column(
    settings: TrainSettings,
    schema: Schema,
    label: str,
    statement: ast.Statement,
    held_out: HeldOut,
    errors: list[SQLFlowError],
) -> str:
    """Return the column of the groups, empty for models that rank nothing; add errors where groups are unusable."""
    if settings.model is None or settings.model.task != "ranking":
        return ""
    if settings.get(COLUMN) is None:
        errors.append(
            SemanticError(
                f"{settings.model.name} needs the column of the groups in which it ranks rows",
                span=statement.model.span if statement.model else None,
                hint=f"add {COLUMN} = query_id, for instance",
            )
        )
        return ""
    name, error = settings.column(COLUMN, schema, {label}, "is the label; it cannot group the rows too")
    if error is None and schema.type(name) is ColumnType.OTHER:
        error = schema.unusable(name, settings.span(COLUMN))
    errors += [error] if error else []
    errors += _refuse_divided_groups(settings, held_out)
    return name


def _refuse_divided_groups(settings: TrainSettings, held_out: HeldOut) -> Iterator[SQLFlowError]:
    """Yield errors for attributes that would put rows of one group on several sides."""
    if settings.get(TEST):
        yield SemanticError(
            f"{TEST} would divide groups, and a ranking is measured on whole ones",
            span=settings.span(TEST),
            hint="leave it out, and EVALUATE the model on the rows to test it on",
        )
    if settings.get(SHUFFLE) is False and not held_out.query and held_out.share != 0:
        yield SemanticError(
            f"{SHUFFLE} = FALSE would divide a group: the last rows of the query's order are the validation rows",
            span=settings.span(SHUFFLE),
            hint="leave it out, or select the validation rows by a query: VALIDATE ON (SELECT …)",
        )


def evaluate_groups(
    label: spec.Label, name: str, statement: ast.Statement, schema: Schema, errors: list[SQLFlowError]
) -> spec.Label:
    """Return the label of a trained model in the column `name` of another query; add an error if that has no groups."""
    if label.is_unsupervised or label.labels:  # they have their columns, or none
        return label
    renamed = msgspec.structs.replace(label, column=name)
    if not renamed.group:
        return renamed
    group_here = schema.find(renamed.group)
    if group_here is None:
        errors.append(
            SemanticError(
                f"the query lacks the column {renamed.group}, of the groups in which the model ranks rows",
                span=statement.select_span,
                hint="select it, by that name",
            )
        )
    return msgspec.structs.replace(renamed, group=group_here or renamed.group)
