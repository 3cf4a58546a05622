"""NULL and unseen values in the features of a model.

NULL is a value of its own: a category has an id for it, and a number of a network has an indicator beside it wherever
training rows had NULL. A value that training did not have is something else, and nothing is known of it:

* trees learn what to expect of it from the values that are too rare to have an id. Where there are none it takes the
  path of the most frequent value;
* a network has an id for it, and learns its weight or vector from some known ids of a minibatch that are replaced by it
  (`train.unseen_rate`). If training had no NULL, NULL is unseen too, and both have that id;
* as part of a cross it counts as the most frequent value; as an item of a list it has the id of a NULL item, and lists
  hardly have those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from edl import spec
from edl.spec.categories import Unseen
from sqlflow_edl.analysis.columns.decisions import Decision
from sqlflow_edl.analysis.columns.drafts import Draft, Statistics
from sqlflow_edl.analysis.columns.inputs import Fitted, Placed
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want


def separate_unseen(column: Fitted, statistics: Statistics, *, trees: bool) -> Fitted:
    """Return the column with ids of its own for unseen values and NULL, as its model can learn them."""
    if spec.is_encoding(column):
        encoded = column.category.with_unseen(lambda _: "other")
        return msgspec.structs.replace(column, category=encoded, nulls=True)
    category = spec.category_of(column)
    if not spec.is_category(category):
        return column
    choose = _choose_for_trees if trees else _choose_for_networks
    shared = bool(column.table)  # columns that share vectors have the same ids
    separate = category.with_unseen(lambda part: "other" if shared else choose(part, statistics))
    return separate if spec.is_category(column) else msgspec.structs.replace(column, category=separate)


def draft_indicator(column: str, *, why: str, applies: Callable[[Statistics], bool]) -> Draft:
    """Return whether a number, boolean or time is NULL, as a number."""
    indicator = spec.IsNull(column)
    return Draft((column,), Want.MOMENTS, lambda _: indicator, why=why, applies=applies)


def list_null_indicators(
    fitted: Sequence[Placed], nulls: Mapping[str, ColumnStatistics]
) -> Iterator[tuple[int, Placed, Decision]]:
    """Yield the indicators of a network's numbers that are NULL in training rows, with the place that each belongs to.

    A number has none if another feature of it tells NULL from its mean. nulls: statistics by the name of the source.
    """
    marked = {
        (tuple(spec.sources(placed.column)), placed.input) for placed in fitted if placed.column.tells_null
    }
    for place, placed in enumerate(fitted):
        if not placed.column.hides_null:
            continue
        [source] = spec.sources(placed.column)
        column_statistics = nulls.get(str(source))
        if column_statistics and column_statistics.nulls and ((source,), placed.input) not in marked:
            marked.add(((source,), placed.input))
            indicator = spec.IsNull(source)
            why = f"NULL in {column_statistics.nulls:,} of {column_statistics.rows:,} training rows"
            names = tuple(spec.source_columns(indicator))
            yield place, Placed(indicator, placed.input, placed.span), Decision(names, why, indicator)


def list_columns_with_unseen_as_null(job: spec.JobSpec) -> list[str]:
    """Return the columns of a model of an earlier version in which an unseen value is NULL; empty for others."""
    if job.training.unseen_rate:
        return []
    categories = (category for category in map(spec.category_of, job.features) if spec.is_category(category))
    mixed = (
        category
        for category in categories
        if category.levels and not category.has_lists and not category.unseen
    )
    return list(dict.fromkeys(name for category in mixed for name in spec.source_columns(category)))


def _choose_for_trees(category: spec.Category, statistics: Statistics) -> Unseen:
    """Choose an id of their own for unseen values if rare ones train it."""
    if not category.levels:
        return msgspec.UNSET
    [source] = spec.sources(category)
    return "other" if statistics[str(source)].distinct > category.size else "frequent"


def _choose_for_networks(category: spec.Category, statistics: Statistics) -> Unseen:
    """Choose the id of NULL for unseen values if no training row has NULL."""
    [source] = spec.sources(category)
    column_statistics = statistics[str(source)]
    return msgspec.UNSET if column_statistics.rows and not column_statistics.nulls else "other"
