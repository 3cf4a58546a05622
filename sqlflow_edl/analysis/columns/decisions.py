"""Decisions on the selected columns and their reasons, for the plan and for the model's record of its fitting."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from edl import spec
from edl.models.fitting import ColumnSummary, Fitting
from sqlflow_edl.analysis.columns.drafts import Draft
from sqlflow_edl.analysis.columns.inputs import Fitted
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want

TOP_VALUES = 10  # of a column in a model's record
WRITTEN = "written in COLUMN"


@dataclass(frozen=True, slots=True)
class Decision:
    """Result for a column, or for several together; fitted is None if they are left out, for the reason `why`."""

    columns: tuple[str, ...]
    why: str
    fitted: Fitted | None = None

    @property
    def note(self) -> str:
        """Sentence on columns that are left out."""
        return f"{', '.join(self.columns)} is left out: {self.why}"

    def note_of(self, candidates: Sequence[Collection[str]]) -> str:
        """Sentence on columns that some candidates leave out; empty if none does. candidates: the columns of each."""
        names = {name for columns in self.columns for name in columns.split(", ")}
        without = sum(names.isdisjoint(columns) for columns in candidates)
        if without == len(candidates):
            return self.note
        some = f"{', '.join(self.columns)} is left out by {without:,} of {len(candidates):,} candidates: {self.why}"
        return some if without else ""


def decision(draft: Draft, fitted: Fitted) -> Decision:
    """Return the decision for a fitted column, with its origin: written, or by type."""
    several = Want.TEXT in draft.wants and spec.category_of(fitted).delimiter
    why = "a text, of lists" if several else draft.why
    origin = f"of {draft.origin}" if draft.origin else WRITTEN
    return Decision(draft.columns, f"by type: {why}" if draft.why else origin, fitted)


class Reasons:
    """Reasons of features by the decisions on their columns, found without a search through all decisions."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self._decisions = decisions
        self._by_object = {id(choice.fitted): choice.why for choice in decisions if choice.fitted is not None}

    def find(self, feature: spec.Feature) -> str:
        """Return the reason of a feature's decision, and the form of a category where none is written."""
        why = self._by_object.get(id(feature))
        if why is not None:
            return why
        category = getattr(feature, "category", None) or spec.category_of(feature)
        why = self._by_object.get(id(category))
        why = self._find_equal(feature, category) if why is None else why
        if not why or feature.array != "ids" or not spec.is_category(category):
            return why
        form = "an embedding" if feature.dim else "one-hot"
        return f"{why}; {spec.num_ids(category):,} ids, so {form}"

    def _find_equal(self, feature: spec.Feature, category: object) -> str:
        """Return the reason of a feature that was made anew since its decision."""
        columns = tuple(spec.source_columns(feature))
        alike = [
            (choice.fitted, choice.why)
            for choice in self._decisions
            if choice.fitted is not None and tuple(spec.source_columns(choice.fitted)) == columns
        ]
        equal = [why for fitted, why in alike if fitted == feature]
        of_category = (why for fitted, why in alike if spec.category_of(fitted) == category)
        return equal[0] if equal else next(of_category, "")


def record_fitting(
    columns: dict[str, ColumnSummary],
    decisions: Sequence[Decision],
    features: Iterable[spec.Feature],
    warnings: Iterable[object] = (),
) -> Fitting:
    """Return the record of the fitting that the model keeps. features: the JobSpec's, in order."""
    reasons = Reasons(decisions)
    left_out = (decision for decision in decisions if decision.fitted is None)
    return Fitting(
        columns=columns,
        reasons=tuple(map(reasons.find, features)),
        left_out={", ".join(decision.columns): decision.why for decision in left_out},
        warnings=tuple(map(str, warnings)),
    )


def summaries(
    statistics: Mapping[str, ColumnStatistics], wants: Mapping[str, Want]
) -> dict[str, ColumnSummary]:
    """Map columns to their summaries."""
    return {name: summary(statistics[name], want) for name, want in wants.items()}


def summary(column_statistics: ColumnStatistics, want: Want) -> ColumnSummary:
    """Summarize the column's statistics, limited to the wanted ones."""
    numbers = Want.MOMENTS in want and column_statistics.numbers > 0
    counted = Want.COUNTS in want
    counts = column_statistics.counts
    return ColumnSummary(
        rows=column_statistics.rows,
        nulls=column_statistics.nulls,
        min=column_statistics.min if numbers else None,
        max=column_statistics.max if numbers else None,
        mean=column_statistics.mean if numbers else None,
        std=column_statistics.std if numbers else None,
        distinct=column_statistics.distinct if counted else None,
        countless=counted and counts is None,
        top=tuple(zip(counts.values[:TOP_VALUES], counts.counts[:TOP_VALUES], strict=True)) if counts else (),
        histogram=column_statistics.histogram if numbers else None,
        bins=column_statistics.bins,
        once=counts.counts.count(1) if counts else None,
    )
