"""COLUMN functions that give a statistic of a category: the mean label, the mean of a number, the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from edl import spec
from edl.errors import SemanticError, Span
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.columns.categories import frequent_values
from sqlflow_edl.analysis.columns.drafts import Bound, Draft, Statistics
from sqlflow_edl.analysis.columns.inputs import Fitted
from sqlflow_edl.analysis.statistics.fitting import Want

SMOOTHING = 10  # rows that the prior counts for
MOST_VALUES = 20_000  # of a vocabulary, which has statistics of each fold for each value
MOST_CLASSES = 50


def target_encode(bound: Bound) -> Draft:
    smoothing = float(bound["smoothing"] or SMOOTHING)
    return _draft_encoding(bound, lambda category: spec.TargetMean(category, smoothing))


def count_encode(bound: Bound) -> Draft:
    return _draft_encoding(bound, spec.LogCount)


def group_mean(bound: Bound) -> Draft:
    return _draft_group(bound, difference=False)


def group_difference(bound: Bound) -> Draft:
    return _draft_group(bound, difference=True)


def _draft_group(bound: Bound, *, difference: bool) -> Draft:
    number = bound.numeric_column()
    of_category = _draft_encoding(bound, lambda category: spec.GroupMean(category, number, difference))
    of_number = replace(of_category, columns=(number,), wants=Want.MOMENTS)
    return replace(of_category, columns=(*of_category.columns, number), parts=(of_category, of_number))


def _draft_encoding(bound: Bound, encode: Callable[[spec.categories.Plain], spec.Encoding]) -> Draft:
    inner: Draft = bound["category"]
    column = inner.columns[0]
    by_type = Want.TEXT in inner.wants  # a column by itself

    def values(statistics: Statistics) -> Fitted:
        return frequent_values(column, statistics, bound.span, max_size=MOST_VALUES)

    def fit(statistics: Statistics) -> spec.Encoding:
        category: Fitted = (
            frequent_values(column, statistics, bound.span, max_size=MOST_VALUES)
            if by_type
            else inner.fit(statistics)
        )
        if "encoding" not in category.places:
            raise bound.fail(
                f"{bound.function.name} takes one category of each row, and {column} holds lists",
                hint=f"{bound.function.name}({expressions.argument(column)}) takes each list as a whole",
            )
        return encode(category)  # type: ignore[arg-type]  # of one id per row

    wants = Want.COUNTS if by_type else inner.wants
    return replace(inner, fit=fit, wants=wants, span=bound.span, is_category=False)


def of_label(column: Fitted, label: spec.Label, span: Span | None) -> Fitted:
    """Return the column with as many values as the label needs. Raises SemanticError for too many classes."""
    if not isinstance(column, spec.TargetMean):
        return column
    if label.labels:
        message = f"TARGET_ENCODE encodes by one label, and there are several: {label.column}"
        raise SemanticError(message, span=span, hint="leave it out, or use EMBEDDING or COUNT_ENCODE")
    if not label.has_classes:
        return column
    if len(label.classes) > MOST_CLASSES:
        raise SemanticError(
            f"TARGET_ENCODE has a number for each class, and {label.column} has {len(label.classes):,} of them",
            span=span,
            hint=f"up to {MOST_CLASSES} are possible; COUNT_ENCODE and EMBEDDING do not depend on the classes",
        )
    return msgspec.structs.replace(column, outputs=len(label.classes) - 1)
