"""Automatic number of workers: a state machine over the throughput that a job is measured to have.

    measure with n ─▶ try n + 1 ─▶ measure ─▶ keep it if it adds GROW of its share ─▶ try n + 2 …
          ▲                           │ else back to n
          └── hold, longer each time ◀┘

A worker's share is the mean throughput of the others. With one worker less, the same is measured when the last worker
seems to add less than SHRINK of its share, and once if it was never measured. SHRINK is below GROW, and each vain trial
doubles the time to the next one, so the number settles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import stdev
from typing import NamedTuple

GROW, SHRINK = 0.6, 0.5  # share of the others' mean that a worker adds, to be kept when it comes, and later
SETTLE_SECS = 5.0  # after a change, before the measurement
LEAST_SECS, LONGEST_SECS = 15.0, 120.0  # of training, of a measurement
LEAST_NEWS = 8  # growths of the count of rows in it
PART_SECS = 3.0  # of a part of it: their spread tells how exact the mean is
PRECISION = 0.12  # standard error that ends a measurement, as a part of one worker's share
WEAK = 2  # measurements in a row that make the last worker doubtful
ARRIVAL_SECS, ROOM_SECS = 180.0, 20.0  # time for a worker to take part; without room for it
FIRST_HOLD, LONGEST_HOLD = 60.0, 3600.0  # seconds between two trials


class JobLook(NamedTuple):
    """A job at one moment: the second, its rows so far, and the workers that take part.

    `trains`: rows are trained, not measured. `has_room`: the cluster has room for all wanted workers.
    """

    now: float
    rows: int
    active: int
    trains: bool = True
    has_room: bool = True


class WorkerDecision(NamedTuple):
    """Number of workers from now on, and why in words."""

    workers: int
    reason: str


@dataclass
class _Measurement:
    """Rows and seconds of training since `began`, of which the first SETTLE_SECS do not count.

    `parts` are the rows per second of each PART_SECS, the last of which is under way.
    """

    began: float
    seconds: float = 0.0
    rows: int = 0
    news: int = 0
    parts: list[float] = field(default_factory=list)
    part_began: tuple[float, int] = (0.0, 0)

    def add(self, seconds: float, rows: int) -> None:
        self.seconds += seconds
        self.rows += rows
        self.news += rows > 0
        began, before = self.part_began
        if self.seconds - began >= PART_SECS:
            self.parts.append((self.rows - before) / (self.seconds - began))
            self.part_began = self.seconds, self.rows

    def is_complete(self, workers: int) -> bool:
        """Return True if the mean is exact enough to tell what one of so many workers adds."""
        if self.seconds < LEAST_SECS or self.news < LEAST_NEWS:
            return False
        error = stdev(self.parts) / math.sqrt(len(self.parts))
        return error <= PRECISION * self.rate / workers or self.seconds >= LONGEST_SECS

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


class Autoscaler:
    """Number of workers of one job, from 1 to `most`. Call `observe` about once a second."""

    def __init__(self, workers: int, most: int) -> None:
        self._most = most
        self.set(workers)

    def set(self, workers: int) -> None:
        """Begin anew with a number that somebody else has chosen."""
        self._workers = workers
        self._rates: dict[int, float] = {}  # last measured rows per second by the number of workers
        self._before: int | None = None  # number before the present trial
        self._measurement: _Measurement | None = None
        self._last: JobLook | None = None
        self._decided = 0.0
        self._hold, self._next_trial = FIRST_HOLD, 0.0
        self._weak = 0

    def observe(self, look: JobLook) -> WorkerDecision | None:
        """Return a decision, or None. A decision for the present number tells the result of a trial."""
        last, self._last = self._last, look
        if look.active != self._workers:
            self._measurement = None
            return self._await_arrival(look)
        if self._measurement is None:
            self._measurement = _Measurement(look.now)
        elif last is not None and last.trains and look.trains:
            self._add(self._measurement, last, look)
        if not self._measurement.is_complete(self._workers):
            return None
        self._rates[self._workers], self._measurement = self._measurement.rate, None
        if self._before is not None:
            return self._judge_trial(look.now, self._before)
        return self._begin_trial(look.now)

    @staticmethod
    def _add(measurement: _Measurement, last: JobLook, look: JobLook) -> None:
        if look.now - measurement.began < SETTLE_SECS:
            return
        # fewer rows than before: the job has gone back to a checkpoint
        measurement.add(look.now - last.now, max(0, look.rows - last.rows))

    def _await_arrival(self, look: JobLook) -> WorkerDecision | None:
        """End a trial for which no worker comes."""
        if self._before is None or self._workers < self._before:
            return None
        waited = look.now - self._decided
        if waited <= (ARRIVAL_SECS if look.has_room else ROOM_SECS):
            return None
        why = "has not come" if look.has_room else "has no room"
        tried, before = self._workers, self._before
        self._end_trial(look.now, before, in_vain=True)
        return WorkerDecision(before, f"worker {tried} {why} for {waited:.0f} s: back to {before}")

    def _begin_trial(self, now: float) -> WorkerDecision | None:
        """Try one worker more or less, if it is time to."""
        workers, rates = self._workers, self._rates
        fewer = rates.get(workers - 1)
        is_weak = fewer is not None and self._compute_gain(workers) < SHRINK
        self._weak = self._weak + 1 if is_weak else 0
        if self._weak >= WEAK:
            return self._try(now, workers - 1, "the last one seems to add less than before")
        if now < self._next_trial:
            return None
        is_highest = workers == self._most or self._rates.get(workers + 1) is not None
        if workers > 1 and fewer is None and is_highest:
            return self._try(now, workers - 1, "fewer were never measured")
        if workers < self._most and self._weak == 0:
            return self._try(now, workers + 1, "")
        return None

    def _try(self, now: float, workers: int, why: str) -> WorkerDecision:
        before, self._before, self._workers = self._workers, self._workers, workers
        self._decided, self._measurement, self._weak = now, None, 0
        text = f"{_count(before)} {self._describe(before)}: trying {workers}"
        return WorkerDecision(workers, f"{text}, because {why}" if why else text)

    def _judge_trial(self, now: float, before: int) -> WorkerDecision:
        """Keep the greater number if its last worker adds enough, else the smaller one."""
        tried = self._workers
        high, least = max(before, tried), GROW if tried > before else SHRINK
        gain = self._compute_gain(high)
        chosen = high if gain >= least else high - 1
        self._end_trial(now, chosen, in_vain=chosen == before)
        figures = f"{_count(high)} {self._describe(high)}, {high - 1} {self._describe(high - 1)}"
        share = f"worker {high} adds {max(0.0, gain):.0%} of its share"
        outcome = f"{chosen} remain{'s' if chosen == 1 else ''}" if chosen == tried else f"back to {chosen}"
        return WorkerDecision(chosen, f"{figures}: {share}, {least:.0%} are needed; {outcome}")

    def _end_trial(self, now: float, chosen: int, *, in_vain: bool) -> None:
        grew = self._before is not None and chosen > self._before
        self._hold = min(2 * self._hold, LONGEST_HOLD) if in_vain else FIRST_HOLD
        self._next_trial = now if grew else now + self._hold
        self._workers, self._before, self._measurement, self._weak = chosen, None, None, 0

    def _compute_gain(self, workers: int) -> float:
        """Return what the last of so many workers adds, as a part of the others' mean."""
        fewer = self._rates[workers - 1]
        if not fewer:
            return 1.0
        return (self._rates[workers] - fewer) / (fewer / (workers - 1))

    def _describe(self, workers: int) -> str:
        return f"train{'s' if workers == 1 else ''} {self._rates[workers]:,.0f} rows/s"


def _count(workers: int) -> str:
    return f"{workers} worker{'' if workers == 1 else 's'}"
