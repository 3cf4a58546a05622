"""Features of another model, as it was fitted: FEATURES(m) in COLUMN.

They keep the statistics, vocabularies and boundaries of m, whatever the rows of the new training are. A category is
a category again, in the form (one-hot, vectors) that the new model wants; vectors that are written, or that columns
share, keep their length.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from edl import spec
from edl.data.arrow_types import schema_of
from edl.errors import SemanticError, Span, did_you_mean
from sqlflow_edl.analysis.columns.drafts import Bound, Draft
from sqlflow_edl.analysis.columns.inputs import Fitted
from sqlflow_edl.analysis.expressions import argument
from sqlflow_edl.analysis.expressions import model as model_name
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.statistics.fitting import Want
from sqlflow_edl.syntax import ast


@dataclass(frozen=True, slots=True)
class Reused:
    """Model of the reused features: `name@version` and its JobSpec."""

    reference: str
    spec: spec.JobSpec


Models = Mapping[str, Reused]  # by the name that the statement has


def item_only(bound: Bound) -> Draft:
    """Refuse FEATURES as an argument, because it would be several arguments."""
    raise bound.fail("FEATURES(m) is an item of COLUMN by itself, and no argument")


@dataclass(frozen=True, slots=True)
class ReusedSource:
    """FEATURES(m, columns) in a statement. columns: the columns of m to take the features of; empty for all."""

    model: Reused
    span: Span
    columns: tuple[str, ...] = ()


def drafts(source: ReusedSource, schema: Schema, reserved: Mapping[str, str], tables: int) -> list[Draft]:
    """Return the features of the model over the columns of the query; shared tables are numbered behind `tables`.

    Raises SemanticError if the query lacks a column, or the model has features that are no other's.
    """
    reference, trained = source.model.reference, source.model.spec
    if trained.members or trained.forecast is not None or not trained.inputs:
        kind = "a forecast" if trained.forecast is not None else "an ensemble"
        raise SemanticError(
            f"{reference} is {kind}, whose features are of its own rows",
            span=source.span,
            hint="FEATURES takes a model that was trained on the columns of a query",
        )
    selected = {column.casefold() for column in source.columns} or {
        column_name.casefold() for column_name in trained.columns
    }
    trained_names = {column.casefold() for column in trained.columns}
    if unknown := [column for column in source.columns if column.casefold() not in trained_names]:
        raise SemanticError(
            f"{reference} reads no column {unknown[0]}",
            span=source.span,
            hint=did_you_mean(unknown[0], trained.columns, list_up_to=12),
        )
    features = [
        _shift_table(feature, tables)
        for feature in _each_once(trained)
        if {column.casefold() for column in spec.source_columns(feature)} <= selected
    ]
    if not features:
        raise SemanticError(
            f"{reference} has no feature of {', '.join(source.columns) or 'any column'} alone",
            span=source.span,
            hint="name all columns that a feature reads together, or leave the list out",
        )
    return [_draft(feature, source, schema, reserved) for feature in features]


def _shift_table(feature: spec.Feature, tables: int) -> spec.Feature:
    return msgspec.structs.replace(feature, table=feature.table + tables) if feature.table else feature


def with_parent(name: ast.Name, parent: str) -> SemanticError:
    """Return the error for FEATURES in a training that starts from a model."""
    return SemanticError(
        f"the features of TRAIN … USING {parent} are its own",
        span=name.span,
        hint=f"leave COLUMN FEATURES({name.text}) out, or USING",
    )


def _each_once(trained: spec.JobSpec) -> list[spec.Feature]:
    """Return the features; of a category that has vectors and is one-hot too, in two parts of a model, the vectors."""
    distinct = dict.fromkeys(itertools.chain(*trained.inputs.values()))
    embedded = {embedding.category for embedding in spec.embeddings(distinct)}
    together: dict[object, list[spec.Feature]] = {}  # features of one table are neighbours
    for feature in distinct:
        if feature.is_one_hot and spec.category_of(feature) in embedded:
            continue
        together.setdefault(feature.table or feature, []).append(feature)
    return [feature for features in together.values() for feature in features]


def _draft(feature: spec.Feature, source: ReusedSource, schema: Schema, reserved: Mapping[str, str]) -> Draft:
    model, span = source.model, source.span
    names: dict[str, str] = {}
    for column in dict.fromkeys(spec.source_columns(feature)):
        column_here = schema.find(column)
        if column_here is None or column_here in reserved:
            message = (
                f"the query lacks the column {column} that {model.reference} reads"
                if column_here is None
                else f"{model.reference} reads {column_here}, {reserved[column_here]}; a model must not see it"
            )
            raise SemanticError(message, span=span, hint=_drop_unneeded_columns(source, schema, reserved))
        names[column] = column_here
        _check_kind(feature, column, column_here, source, schema)
    if spec.is_encoding(feature):
        what = "TARGET_ENCODE" if feature.needs_label else "GROUP_MEAN" if feature.number else "COUNT_ENCODE"
        raise SemanticError(
            f"{model.reference} has {what} of {', '.join(names)}, whose statistics are those of its own training rows",
            span=span,
            hint=f"name the columns themselves in COLUMN, with {what} of your own rows",
        )
    own_feature = spec.with_columns(feature, names)
    return Draft(
        tuple(names.values()),
        _kept_statistics(tuple(names.values()), schema),
        lambda _: own_feature,
        span,
        table=feature.table,
        origin=model.reference,
    )


def _check_kind(
    feature: spec.Feature, column: str, column_here: str, source: ReusedSource, schema: Schema
) -> None:
    """Raise SemanticError if the query's column is of another kind than the model's; a category may be either."""
    fields = {field.name: field for field in source.model.spec.query.schema}
    if column not in fields:
        return
    theirs = Schema(schema_of([fields[column]])).type(column)
    kinds = {theirs, schema.type(column_here)}
    numeric = {ColumnType.NUMBER, ColumnType.BOOLEAN}
    category = spec.category_of(feature)
    plain = category.computed == "texts" and not category.has_lists
    if len(kinds) > 1 and not kinds <= (numeric | {ColumnType.TEXT} if plain else numeric):
        raise SemanticError(
            f"{column_here} is {schema.type(column_here).words}, and {theirs.words} in {source.model.reference}",
            span=source.span,
            hint="cast it in the SELECT, or name the other columns in FEATURES(m, [x, y])",
        )


def _drop_unneeded_columns(source: ReusedSource, schema: Schema, reserved: Mapping[str, str]) -> str | None:
    """Return the call with the columns of the model that the query has."""
    pairs = ((column, schema.find(column)) for column in source.model.spec.columns)
    usable = [
        argument(column)
        for column, column_here in pairs
        if column_here is not None and column_here not in reserved
    ]
    name = model_name(source.model.reference)
    return f"write FEATURES({name}, [{', '.join(usable)}]) for these columns alone" if usable else None


def _kept_statistics(columns: tuple[str, ...], schema: Schema) -> Want:
    """Return the statistics that the model keeps of the column, to compare later rows with."""
    if len(columns) > 1:
        return Want.NONE
    kind = schema.type(columns[0])
    if kind in (ColumnType.TEXT, ColumnType.BOOLEAN):
        return Want.COUNTS
    return Want.MOMENTS if kind is ColumnType.NUMBER or kind.is_temporal else Want.NONE


def form(column: Fitted, draft: Draft, *, trees: bool) -> Fitted:
    """Return the feature in the form that the new model starts from. Raises SemanticError for numbers of trees."""
    category = spec.category_of(column)
    if category is not column and (column.is_for_trees or column.is_one_hot or (trees and column.dim)):
        return category
    if column.is_for_trees and not trees:
        raise SemanticError(
            f"{draft.origin} is a model of trees, which take {', '.join(draft.columns)} as it is; a network needs "
            "statistics of it",
            span=draft.span,
            hint="name the columns themselves, or FEATURES of a network",
        )
    return column
