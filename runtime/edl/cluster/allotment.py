"""How the slots of a quota are shared by the jobs that ask for them; a slot is one worker or parameter server.

1. A job has at least its least, or nothing; one that holds slots keeps its least, whoever comes.
2. The others are let in by rank (higher priority first, then the older) where their least fits beside those of the jobs
   that are in. One that does not fit lets the next one pass, or a slot would be idle that somebody wants; so a job that
   needs many slots at once may be overtaken by jobs that need few.
3. What is left goes by priority: a lower one gets none of it while a higher one wants more. Jobs of one priority are
   brought to the same number, as far as each wants so many; the odd slots go to the older.

The answer follows from who is in and what each wants, not from how many slots each holds at the moment. So all who
compute it agree, and nothing moves to and fro while jobs give slots back and take them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec


class SlotRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a job asks of a quota. least: slots without which it cannot run. most: that it can use."""

    least: int
    most: int
    priority: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"{self.least} to {self.most} slots are nothing that a job could ask for")


class Demand(msgspec.Struct, frozen=True):
    """A job among those of a quota. since: the second at which it came. holds: slots at the moment; 0: it waits."""

    job: str
    request: SlotRequest
    since: float
    holds: int = 0

    @property
    def rank(self) -> tuple[int, float, str]:
        """Lower goes first."""
        return -self.request.priority, self.since, self.job


def allot(demands: Iterable[Demand], slots: int) -> dict[str, int]:
    """How many slots each job is to have. Together no more than there are, unless so many are the leasts of holders."""
    ranked = sorted(demands, key=lambda demand: demand.rank)
    given = {demand.job: demand.request.least if demand.holds else 0 for demand in ranked}
    left = slots - sum(given.values())
    for demand in ranked:
        if not demand.holds and demand.request.least <= left:
            given[demand.job] = demand.request.least
            left -= demand.request.least
    for _, equals in groupby(ranked, key=lambda demand: demand.request.priority):
        left = _level([demand for demand in equals if given[demand.job]], given, left)
    return given


def _level(equals: list[Demand], given: dict[str, int], left: int) -> int:
    """Give to whoever of them has fewest, slot by slot, as long as somebody wants one; what is left."""
    while left > 0:
        wanting = [demand for demand in equals if given[demand.job] < demand.request.most]
        if not wanting:
            break
        given[min(wanting, key=lambda demand: given[demand.job]).job] += 1
        left -= 1
    return left
