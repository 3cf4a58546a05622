"""Allocation of a quota's slots to the jobs that request them; a slot is one worker or parameter server.

1. A job gets at least its minimum, or nothing. A job that holds slots keeps its minimum. 2. Other jobs are admitted by
rank (higher priority first, then the older) if their minimum fits beside the minimums of the admitted jobs. If one does
not fit, the next one is tried, since slots should not stay idle; so a job with a large minimum may be overtaken by jobs
with small ones. 3. The remaining slots go by priority: a lower one gets none while a higher one can use more. Jobs of
equal priority get equal numbers, as far as each can use them; odd slots go to the older ones.

The result depends on the admitted jobs and their requests, not on the slots that each holds at the moment. So all
processes that compute it agree, and it does not oscillate while jobs return and take slots.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec


class SlotRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Request of a job to a quota: `least` slots that it needs to run, and `most` slots that it can use."""

    least: int
    most: int
    priority: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"a request of {self.least} to {self.most} slots is invalid")


class Demand(msgspec.Struct, frozen=True):
    """Request of one of a quota's jobs. `since` is its arrival in seconds. `holds` is its present number of slots, 0
    while it waits.
    """

    job: str
    request: SlotRequest
    since: float
    holds: int = 0

    @property
    def rank(self) -> tuple[int, float, str]:
        """Sort key; lower comes first."""
        return -self.request.priority, self.since, self.job


def allot(demands: Iterable[Demand], slots: int) -> dict[str, int]:
    """Return the number of slots of each job. The sum exceeds the total only if the minimums of holders do."""
    ranked = sorted(demands, key=lambda demand: demand.rank)
    allotted = {demand.job: demand.request.least if demand.holds else 0 for demand in ranked}
    left = slots - sum(allotted.values())
    for demand in ranked:
        if not demand.holds and demand.request.least <= left:
            allotted[demand.job] = demand.request.least
            left -= demand.request.least
    for _, equals in groupby(ranked, key=lambda demand: demand.request.priority):
        left = _level([demand for demand in equals if allotted[demand.job]], allotted, left)
    return allotted


def _level(equals: list[Demand], allotted: dict[str, int], left: int) -> int:
    """Give slots one by one to the job with the fewest, as long as a job can use one; return the rest."""
    while left > 0:
        wanting = [demand for demand in equals if allotted[demand.job] < demand.request.most]
        if not wanting:
            break
        allotted[min(wanting, key=lambda demand: allotted[demand.job]).job] += 1
        left -= 1
    return left
