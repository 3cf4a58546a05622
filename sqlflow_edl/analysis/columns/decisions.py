"""What became of the selected columns, and why: what the plan shows, and what a model remembers of its fitting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from edl import spec
from edl.models.fitting import ColumnSummary, Fitting
from sqlflow_edl.analysis.columns.drafts import Draft, Fitted
from sqlflow_edl.analysis.statistics import ColumnStatistics, Want

TOP_VALUES = 10  # of a column that a model remembers
WRITTEN = "written in COLUMN"


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a column, or of several together; fitted None: nothing, for the reason `why`."""

    columns: tuple[str, ...]
    why: str
    fitted: Fitted | None = None


def made(draft: Draft, fitted: Fitted) -> Decision:
    """The decision for a fitted column: who asked for it."""
    several = Want.TEXT in draft.wants and isinstance(_core(fitted), spec.ListOf | spec.Vector)
    why = "a text, of lists" if several else draft.why
    return Decision(draft.columns, f"by type: {why}" if draft.why else WRITTEN, fitted)


def reason(feature: spec.Feature, decisions: Iterable[Decision]) -> str:
    """Why the model has the feature: the decision that it comes from, and how a category enters where nobody said."""
    decisions = [decision for decision in decisions if decision.fitted is not None]
    exact = (decision for decision in decisions if decision.fitted == feature)
    same = (
        decision for decision in decisions if decision.fitted and _core(decision.fitted) == _core(feature)
    )
    found = next(exact, None) or next(same, None)
    if found is None:
        return ""
    if found.fitted == feature or not isinstance(feature, spec.OneHot | spec.Embedding):
        return found.why
    form = "one-hot" if isinstance(feature, spec.OneHot) else "an embedding"
    return f"{found.why}; {spec.num_ids(feature.category):,} ids, so {form}"


def _core(column: Fitted) -> Fitted:
    """The category in a feature that has one."""
    return column.category if isinstance(column, spec.OneHot | spec.Embedding) else column


def fitting(
    statistics: Mapping[str, ColumnStatistics],
    wants: Mapping[str, Want],
    decisions: Sequence[Decision],
    features: Iterable[spec.Feature],
    warnings: Iterable[object] = (),
) -> Fitting:
    """What a model remembers. features: those of the JobSpec, in order."""
    left_out = (decision for decision in decisions if decision.fitted is None)
    return Fitting(
        columns=summaries(statistics, wants),
        reasons=tuple(reason(feature, decisions) for feature in features),
        left_out={", ".join(decision.columns): decision.why for decision in left_out},
        warnings=tuple(map(str, warnings)),
    )


def summaries(
    statistics: Mapping[str, ColumnStatistics], wants: Mapping[str, Want]
) -> dict[str, ColumnSummary]:
    """Column -> what is known of it."""
    return {name: summary(statistics[name], want) for name, want in wants.items()}


def summary(found: ColumnStatistics, want: Want) -> ColumnSummary:
    """What is known of the column, of what was wanted."""
    some = found.nulls < found.rows
    numbers = Want.MOMENTS in want and some
    counted = Want.COUNTS in want
    counts = found.counts
    return ColumnSummary(
        rows=found.rows,
        nulls=found.nulls,
        min=found.min if numbers else None,
        max=found.max if numbers else None,
        mean=found.mean if numbers else None,
        std=found.std if numbers else None,
        distinct=found.distinct if counted else None,
        countless=counted and counts is None,
        top=tuple(zip(counts.values[:TOP_VALUES], counts.counts[:TOP_VALUES], strict=True)) if counts else (),
    )
