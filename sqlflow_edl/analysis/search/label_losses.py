"""Losses that a search tries beside the usual one of numbers: those of a distribution that the label may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from edl import spec
from edl.errors import SemanticError
from edl.models.fitting import Bins
from sqlflow_edl.analysis.search import local
from sqlflow_edl.analysis.search.planning import CandidatePlanner, PlannedCandidate
from sqlflow_edl.analysis.search.portfolio import TREES
from sqlflow_edl.analysis.settings import search as settings
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics

TRIED = "trees are also tried with the loss"  # in the note on losses that the statement does not name
_LARGEST_COUNT = 100  # median of whole numbers that are counts; larger ones are amounts
_SKEWED = 1.5  # least distance of the last decile from the median, as a multiple of that of the first
_INEXACT = 0.02  # by which the share of rows below a decile may differ from it: the edges are of a sample
# They gained 1 % and nothing on drawn tables, so that a short search spends its time on other models first.
_LATE = ("gamma", "tweedie")
_NEEDED = {"poisson": "from 0", "tweedie": "from 0", "gamma": "above 0"}


class LabelLosses(NamedTuple):
    """Losses to try, and the reason; empty if the statement names them."""

    names: Sequence[str] = ()
    why: str = ""

    def note(self) -> str:
        """Return the note on losses that the statement does not name."""
        losses = " and ".join(self.names)
        return f"{TRIED} {losses}: {self.why}; {settings.LOSSES} = none leaves it out"


def choose_losses(
    label: spec.Label, column_statistics: ColumnStatistics, written: Resolved | None
) -> LabelLosses:
    """Return the losses for a label with these statistics. written: the attribute that names them.

    Raises SemanticError if the label has classes, or values that are impossible under a named loss.
    """
    if written is None:
        return _suit_label(label.column, column_statistics)
    if not label.is_number:
        raise SemanticError(
            f"{settings.LOSSES} names losses of a number, and {label.column} has classes",
            span=written.written.span,
            hint="leave it out",
        )
    names = [str(name) for name in written.value if name != settings.NO_LOSS]  # type: ignore[union-attr]  # texts
    lowest = column_statistics.min
    for name in names:
        if lowest < 0 or (lowest == 0 and name == "gamma"):
            raise SemanticError(
                f"the loss {name} needs labels {_NEEDED[name]}, and {label.column} goes down to {lowest:g}",
                span=written.written.span,
                hint=f"leave {name} out",
            )
    return LabelLosses(names)


def _suit_label(label: str, column_statistics: ColumnStatistics) -> LabelLosses:
    """Return the losses for skewed labels that are not negative; none for others."""
    lowest, bins = column_statistics.min, column_statistics.bins
    if bins is None or not bins.edges or lowest < 0:
        return LabelLosses()
    low, middle, high = (_find_quantile(bins, share) for share in (0.1, 0.5, 0.9))
    if high - middle <= _SKEWED * (middle - low):
        return LabelLosses()
    tail = f"half of them at most {middle:.4g}, a tenth above {high:.4g}"
    if column_statistics.integers and middle <= _LARGEST_COUNT:
        return LabelLosses(("poisson",), f"the values of {label} are counts, {tail}")
    if lowest > 0:
        return LabelLosses(("gamma",), f"the values of {label} are amounts above 0, {tail}")
    return LabelLosses(("tweedie",), f"the values of {label} are amounts from 0 on, {tail}")


def _find_quantile(bins: Bins, share: float) -> float:
    """Return the largest edge with at most this share of the rows below it."""
    total, below, quantile = sum(bins.counts), 0, bins.edges[0]
    for edge, count in zip(bins.edges, bins.counts, strict=False):
        below += count
        if below <= (share + _INEXACT) * total:
            quantile = edge
    return quantile


def vary_losses(
    candidates: Sequence[PlannedCandidate], losses: LabelLosses, planner: CandidatePlanner, ordered: int
) -> Iterator[PlannedCandidate]:
    """Yield the candidates; the first trees of each library again with each loss, behind these trees or later.

    ordered: number of the candidates that are tried in their order, behind which losses come that gain little.
    """
    libraries: set[str] = set()
    late: list[PlannedCandidate] = []
    for number, candidate in enumerate(candidates, 1):
        yield candidate
        draft, variant = candidate.draft, candidate.draft.variant
        if variant is not None and variant.family == TREES and variant.framework not in libraries:
            libraries.add(variant.framework)
            for loss in losses.names:
                with_loss = replace(variant, attributes={**variant.attributes, "loss": loss})
                point = local.coordinates(with_loss)
                planned = planner.plan(replace(draft, variant=with_loss, lines=with_loss.lines, point=point))
                if losses.why and loss in _LATE:
                    late.append(planned)
                else:
                    yield planned
        if number == ordered:
            yield from late
