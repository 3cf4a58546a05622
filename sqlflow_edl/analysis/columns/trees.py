"""Columns of trees: numbers as they are, categories as codes.

A tree compares a number with thresholds, so it learns the same from a number and from any rising function of it:
STANDARDIZE(x), NORMALIZE(x), LOG(x), PLE(x) and PERIODIC(x) become x. A category becomes its id, which the library
splits into two sets of ids. Missing values stay missing: a split learns their side.
"""

from __future__ import annotations

from dataclasses import replace

from edl import spec
from edl.errors import SemanticError, Span
from sqlflow_edl.analysis.columns.decisions import Decision
from sqlflow_edl.analysis.columns.drafts import Draft
from sqlflow_edl.analysis.columns.inputs import Fitted, one_hot

WIDEST = 1000  # columns of the ids of lists


def fit_column(column: Fitted, span: Span | None) -> spec.Feature:
    """Return the column in the form that trees take. Raises SemanticError if they cannot."""
    if column.dim:
        raise SemanticError(
            "trees learn no vectors, and so no EMBEDDING",
            span=span,
            hint="write the category itself, such as CATEGORY_HASH(x, 1000)",
        )
    if not spec.is_category(column) and (column.is_for_trees or column.array == "sequence"):
        return column
    category = spec.category_of(column) if column.is_one_hot else column
    if not spec.is_category(category):
        return _raw(category) if category.computed or category.part else category.tree_form
    if category.part:
        return _raw(category)
    if category.has_lists:
        return _count_ids(category, span)
    return spec.Codes(category)  # type: ignore[arg-type]  # of one id per row


def _raw(column: Fitted) -> spec.Raw:
    """Return the number of the one column, or the part of its date."""
    [source] = spec.sources(column)
    return spec.Raw(source, column.part)  # type: ignore[arg-type]


def describe_draft(draft: Draft) -> Draft:
    """Return the draft with the reason that holds for trees, which standardise nothing."""
    return replace(draft, why=draft.why.removesuffix(", standardised"))


def wide_decision(column: Fitted) -> Decision | None:
    """Return the decision to leave out a column of lists with more ids than trees take; None of other columns."""
    category = spec.category_of(column) if column.is_one_hot else column
    if not spec.is_category(category) or not category.has_lists or spec.num_ids(category) <= WIDEST:
        return None
    columns = tuple(spec.source_columns(category))
    why = f"it has lists of {spec.num_ids(category):,} ids, and trees take a column for each, at most {WIDEST:,}"
    return Decision(columns, f"{why}; VOCABULARIZE(x, max_size=500) in COLUMN keeps the frequent ones")


def _count_ids(category: spec.Category, span: Span | None) -> spec.Feature:
    """Return a column for each id of a list."""
    if spec.num_ids(category) > WIDEST:
        raise SemanticError(
            f"{', '.join(spec.source_columns(category))} has lists of {spec.num_ids(category):,} ids, and trees take "
            f"a column for each, at most {WIDEST:,}",
            span=span,
            hint="write fewer buckets, such as NGRAMS(x, 3, 500)"
            if category.n
            else "keep the frequent ones with VOCABULARIZE(x, max_size=500), or hash them into fewer",
        )
    return one_hot(category)
