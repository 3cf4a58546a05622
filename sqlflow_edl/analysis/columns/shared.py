"""Columns that share one table of vectors: `EMBEDDING([a, b], 8)` fits them to the values of all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from edl import spec
from edl.errors import SemanticError, Span
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.columns.drafts import Draft, Statistics
from sqlflow_edl.analysis.columns.inputs import Fitted
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, ValueCounts


def share_vectors(drafts: Sequence[Draft], table: int, span: Span) -> list[Draft]:
    """Return the categories with one set of ids, and the number of their table.

    Raises SemanticError for a column that stands there twice.
    """
    drafts = list(drafts)
    again = [columns for columns, times in Counter(draft.columns for draft in drafts).items() if times > 1]
    if again:
        raise SemanticError(
            f"{', '.join(again[0])} stands twice among columns that share vectors",
            span=span,
            hint="name each column once",
        )

    fitted: list[tuple[Statistics, list[Fitted]]] = []  # the last result: each of the drafts asks for it

    def fit_all(statistics: Statistics) -> list[Fitted]:
        if not fitted or fitted[0][0] is not statistics:
            merged = _share_statistics(drafts, statistics)
            fitted_drafts = [draft.fit(merged) for draft in drafts]
            _check_alike(fitted_drafts, span)
            fitted[:] = [(statistics, fitted_drafts)]
        return fitted[0][1]

    def fitting(place: int) -> Draft:
        return replace(drafts[place], fit=lambda statistics: fit_all(statistics)[place], table=table)

    return [fitting(place) for place in range(len(drafts))]


def _share_statistics(drafts: Sequence[Draft], statistics: Statistics) -> Statistics:
    """Return the statistics; the columns of the drafts have the statistics of all their values together.
    Of categories over several columns each, the first ones are together, the second ones, and so on.
    """
    merged = dict(statistics)
    for columns in zip(*(draft.columns for draft in drafts), strict=False):
        together = _with_values_of_all([statistics[column] for column in columns])
        merged |= zip(columns, together, strict=True)
    return merged


def _with_values_of_all(of_columns: Sequence[ColumnStatistics]) -> list[ColumnStatistics]:
    """Return the statistics of each column with the values and numbers of all; likewise the statistics of items."""
    numbers = [one for one in of_columns if one.numbers]
    counts = _counts([one.counts for one in of_columns])
    common: dict[str, Any] = {
        "counts": counts,
        "distinct": len(counts.values) if counts else sum(one.distinct for one in of_columns),
        "integers": all(one.integers for one in numbers),
        "sample": np.concatenate([one.sample for one in of_columns]),
    }
    if numbers:
        common |= {"min": min(one.min for one in numbers), "max": max(one.max for one in numbers)}
    lists = [dict(one.lists) for one in of_columns]
    alike: dict[tuple[str, str], list[tuple[int, Cells]]] = {}
    for place, one in enumerate(of_columns):
        for cells, items in one.lists.items():
            if not items.error:
                alike.setdefault((cells.items, cells.separator), []).append((place, cells))
    for places in alike.values():
        together = _with_values_of_all([of_columns[place].lists[cells] for place, cells in places])
        for (place, cells), items in zip(places, together, strict=True):
            lists[place][cells] = items
    return [
        replace(one, **common, lists=lists_of_one)
        for one, lists_of_one in zip(of_columns, lists, strict=True)
    ]


def _counts(all_counts: Sequence[ValueCounts | None]) -> ValueCounts | None:
    """Return the counts of all columns together, None if one column has no known counts."""
    total: Counter[tuple[str, str | int]] = Counter()
    for counts in all_counts:
        if counts is None:
            return None
        words = ((type(value).__name__, value) for value in counts.values)  # 1 is not true
        total.update(dict(zip(words, counts.counts, strict=True)))
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))  # text in the order of its bytes
    return ValueCounts(tuple(value for (_, value), _ in ordered), tuple(count for _, count in ordered))  # type: ignore[arg-type]


def _check_alike(fitted: Sequence[Fitted], span: Span) -> None:
    """Raise SemanticError if an id does not mean the same in all categories."""
    plain = [_normalize_category(category) for category in fitted]
    for other, other_category in zip(plain[1:], fitted[1:], strict=True):
        if other != plain[0]:
            raise SemanticError(
                "columns that share vectors must be categories of one kind and size; "
                f"{_describe_category(fitted[0])}; {_describe_category(other_category)}",
                span=span,
                hint="write one function with one size, as in EMBEDDING([CATEGORY_ID(a, 9), CATEGORY_ID(b, 9)], 8)",
            )
    if len(set(map(type, spec.item_of(fitted[0]).levels))) > 1:
        raise SemanticError(
            "columns that share vectors must have values of one type; "
            f"{_describe_category(fitted[0])} of texts and numbers",
            span=span,
            hint="cast them to one type in the SELECT",
        )


def _describe_category(category: Fitted) -> str:
    """Return such as `tags: list of vocabulary, 20 ids`."""
    item = spec.item_of(category)
    listed = "list of " if item is not category else ""
    kind = str(item.__struct_config__.tag).replace("_", " ")
    names = ", ".join(map(str, spec.sources(category)))
    return f"{names}: {listed}{kind}, {spec.num_ids(category):,} ids"  # type: ignore[arg-type]


def _normalize_category(category: Fitted) -> Fitted:
    """Return the category without its columns and delimiters, which may differ between categories of shared vectors."""
    names: Mapping[str, spec.Source] = {
        column: f"f{place}" for place, column in enumerate(dict.fromkeys(map(str, spec.sources(category))))
    }
    renamed = spec.with_columns(category, names)
    if not renamed.delimiter:
        return renamed
    return msgspec.structs.replace(renamed, delimiter=",", weights=":" if renamed.weights else "")
