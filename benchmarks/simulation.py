"""Simulation of jobs that share slots, with the runtime's own scheduler and a simulated clock.

Events are the arrival and end of a job, and a slot that becomes productive. A job is an amount of work in
slot-seconds, which its slots share evenly, up to its maximum number of slots. A slot becomes productive
`starting` seconds after its assignment; a revoked slot loses no work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from edl.jobs.slots import Demand, SlotRequest, allot


@dataclass(frozen=True)
class Job:
    """Job to simulate.

    comes: second of its arrival. most: slots that it asks for. work: slot-seconds.
    """

    name: str
    comes: float
    most: int
    work: float


Policy = Callable[[Job], SlotRequest]


def elastic(job: Job) -> SlotRequest:
    return SlotRequest(1, job.most)


def gang(job: Job) -> SlotRequest:
    return SlotRequest(job.most, job.most)


@dataclass
class Course:
    """Course of a simulation.

    changes: from each second on, the slots of each job. ends: second at which each job was done.
    """

    changes: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    ends: dict[str, float] = field(default_factory=dict)

    @property
    def makespan(self) -> float:
        return max(self.ends.values())

    def per_second(self, name: str) -> list[float]:
        """Return the job's average number of slots in each second until the last job ended."""
        found = [0.0] * math.ceil(self.makespan)
        for (begin, holds), (end, _) in pairwise([*self.changes, (self.makespan, {})]):
            spread(found, begin, end, holds.get(name, 0))
        return found


@dataclass
class _Running:
    """Job in progress.

    left: remaining slot-seconds. slots: start of each slot's productive time, oldest first.
    """

    job: Job
    left: float
    slots: list[float] = field(default_factory=list)

    def resize(self, count: int, begins: float) -> None:
        del self.slots[count:]
        self.slots += [begins] * (count - len(self.slots))

    def speed(self, now: float) -> int:
        return sum(begins <= now for begins in self.slots)

    def next_event(self, now: float) -> float:
        speed = self.speed(now)
        begins = [begins for begins in self.slots if begins > now]
        return min([*begins, now + self.left / speed if speed else math.inf])


def simulate(jobs: Iterable[Job], slots: int, policy: Policy, starting: float) -> Course:
    """Simulate from the first second until all jobs are done."""
    coming = sorted(jobs, key=lambda job: job.comes)
    running: list[_Running] = []
    course, now = Course(), 0.0
    while coming or running:
        while coming and coming[0].comes <= now:
            job = coming.pop(0)
            running.append(_Running(job, job.work))
        demands = [
            Demand(each.job.name, policy(each.job), each.job.comes, len(each.slots)) for each in running
        ]
        allotment = allot(demands, slots)
        for each in running:
            each.resize(allotment[each.job.name], now + starting)
        course.changes.append((now, allotment))
        then = min([each.next_event(now) for each in running] + [job.comes for job in coming[:1]])
        for each in running:
            each.left -= each.speed(now) * (then - now)
        now = then
        course.ends |= {each.job.name: now for each in running if each.left < 1e-6}
        running = [each for each in running if each.job.name not in course.ends]
    return course


def spread(seconds: list[float], begin: float, end: float, value: float) -> None:
    """Add to each second the share of the value that falls into it."""
    for second in range(max(0, int(begin)), min(math.ceil(end), len(seconds))):
        seconds[second] += value * max(0.0, min(end, second + 1) - max(begin, second))


def bound(jobs: Sequence[Job], slots: int) -> float:
    """Return a lower bound on the makespan of any schedule.

    No schedule ends before each job alone would, and none before the work that must be left at an arrival has
    gone through all slots.
    """
    alone = [job.comes + job.work / job.most for job in jobs]
    together = [
        begin + sum(max(0.0, job.work - job.most * max(0.0, begin - job.comes)) for job in jobs) / slots
        for begin in {job.comes for job in jobs}
    ]
    return max(alone + together)


def used(course: Course, jobs: Sequence[Job], slots: int) -> float:
    """Return the share of slots in use, of those that arrived and unfinished jobs asked for."""
    held = wanted = 0.0
    moments = {at for at, _ in course.changes} | {job.comes for job in jobs} | set(course.ends.values())
    for begin, end in pairwise(sorted(moments)):
        live = [job for job in jobs if job.comes <= begin < course.ends[job.name]]
        holds = next(holds for at, holds in reversed(course.changes) if at <= begin)
        held += (end - begin) * sum(holds.get(job.name, 0) for job in live)
        wanted += (end - begin) * min(slots, sum(job.most for job in live))
    return held / wanted
