"""What became of the selected columns, and why: what the plan shows, and what a model remembers of its fitting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edl import spec
from edl.models.fitting import ColumnSummary, Fitting
from sqlflow_edl.analysis.functions import Draft, Fitted
from sqlflow_edl.analysis.statistics import ColumnStatistics, Want

TOP_VALUES = 10  # of a column that a model remembers
WRITTEN = "written in COLUMN"


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a column, or of several that make one feature; feature None: nothing, for the reason `why`."""

    columns: tuple[str, ...]
    why: str
    feature: spec.Feature | None = None


def made(draft: Draft, fitted: Fitted, feature: spec.Feature) -> Decision:
    """The decision for a feature: who asked for it, and how its category enters the model where nobody said."""
    why = f"by type: {draft.why}" if draft.why else WRITTEN
    if fitted is not feature and isinstance(fitted, spec.features.CATEGORY_TYPES):
        few = isinstance(feature, spec.OneHot)
        ids = f"{spec.num_ids(fitted):,} ids"
        why += f"; {ids} are few, so one-hot" if few else f"; {ids} are many, so an embedding"
    return Decision(draft.columns, why, feature)


def fitting(
    statistics: Mapping[str, ColumnStatistics],
    wants: Mapping[str, Want],
    decisions: Iterable[Decision],
    features: Iterable[spec.Feature],
) -> Fitting:
    """What a model remembers. features: those of the JobSpec, in order."""
    decisions = list(decisions)
    reasons = {decision.feature: decision.why for decision in decisions if decision.feature is not None}
    return Fitting(
        columns=summaries(statistics, wants),
        reasons=tuple(reasons.get(feature, "") for feature in features),
        left_out={
            ", ".join(decision.columns): decision.why for decision in decisions if decision.feature is None
        },
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
