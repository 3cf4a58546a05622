"""When the parameter servers write down where they are, and what the job's course is at such a cut.

A pure state machine. A cut is

    due        by steps or seconds; the first as soon as the servers are open, and where the last one is lost
    taken      each server has copied what it has; server 0 has said how far which task was then
    written    every shard is on disk, or with its server's neighbour
    complete   its manifest is there, and the ledger says so: from now on the job goes back to it

What comes to nothing on the way is forgotten, and its folder is removed one day: that of an earlier master, too.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edl.master.kept import Cut
from edl.master.lease_table import report_of
from edl.master.leases import Leases
from edl.ps.messages import Arrange, CutTaken, Manifest, Progress, Shard, Version
from edl.spec import Checkpoints
from edl.tasks.job import Job, JobState

AGAIN_SECS = 5.0  # after which a cut that came to nothing is tried again


class Taking(msgspec.Struct):
    """A cut under way. course: of the job when it was begun; job: at the cut. steps: of each server, about then."""

    name: str
    course: Job
    steps: tuple[int, ...]
    job: JobState | None = None
    version: Version = Version()
    shards: dict[int, Shard] = {}
    completing: bool = False


class Cuts:
    """Of one job. servers: how many write a shard. steps_per_version: optimizer steps that a version of theirs is."""

    def __init__(
        self, leases: Leases, when: Checkpoints, servers: int, *, steps_per_version: int = 1
    ) -> None:
        self._leases = leases
        self._when = when
        self._servers = servers
        self._every = when.steps // steps_per_version or 1 if when.steps else 0
        self._taking: Taking | None = None
        self._counter = 0
        self._not_before = 0.0
        self._lost = leases.cut_is_lost  # with the disk of the master before
        self._at: tuple[float, int] | None = None  # second and step of the last one
        self.in_memory = when.copies == "neighbours"
        self.steps: tuple[int, ...] = ()  # of each server at the last complete one, if that was in our time

    @property
    def under_way(self) -> str:
        """The name of the one that is being taken; empty: none is."""
        return self._taking.name if self._taking is not None else ""

    def due(self, step: int, now: float) -> bool:
        """step: of the parameters."""
        alone = self.in_memory and self._servers == 1
        if alone or self._taking is not None or now < self._not_before:
            return False
        if self._leases.kept.cut is None or self._lost:
            return True
        if self._at is None or step < self._at[1]:  # of this master, or since the job went back
            self._at = (now, step)
        second, before = self._at
        if step == before:
            return False
        return bool(
            (self._every and step - before >= self._every)
            or (self._when.secs and now - second >= self._when.secs)
        )

    def begin(self, steps: tuple[int, ...], now: float) -> str:
        """Its name; names sort by time. steps: of each server."""
        self._counter += 1
        name = f"{self._leases.kept.epoch:06d}-{self._counter:06d}"
        self._taking = Taking(name, self._leases.copy(), steps)
        self._at = (now, steps[0])
        return name

    def taken(self, name: str, answer: CutTaken) -> None:
        """Server 0 has taken it."""
        taking = self._taking
        if taking is None or taking.name != name:
            return
        taking.job = state_at_cut(self._leases, taking.course, answer.progress)
        taking.version = answer.version

    def written(self, index: int, name: str, shard: Shard) -> str:
        """A shard is written, or could not be: then why the cut comes to nothing."""
        taking = self._taking
        if taking is None or taking.name != name or index in taking.shards:
            return ""
        taking.shards[index] = shard
        return shard.error

    def to_complete(self) -> Taking | None:
        """A cut whose shards are all written, once: its manifest is to be."""
        taking = self._taking
        if taking is None or taking.job is None or taking.completing or len(taking.shards) < self._servers:
            return None
        taking.completing = True
        return taking

    def completed(self, taking: Taking, manifest: Manifest) -> bool:
        """Its manifest is there: the job goes back to it from now on. False: it was dropped meanwhile."""
        if self._taking is not taking or taking.job is None:
            return False
        kept = self._leases.kept
        kept.cut = Cut(taking.name, taking.job)
        if self.in_memory:  # whoever is lost while it is taken has it dropped
            kept.cut.manifest, kept.cut.lives = manifest, [place.life for place in kept.servers]
        self.steps = taking.steps
        self._taking, self._lost = None, False
        return True

    def readable(self) -> bool:
        """Whether there is no complete cut, or every shard of it is still somewhere."""
        cut, places = self._leases.kept.cut, self._leases.kept.servers
        if cut is None or cut.manifest is None:
            return True
        here = [
            bool(place.address) and place.life == life for place, life in zip(places, cut.lives, strict=True)
        ]
        return all(one or after for one, after in zip(here, here[1:] + here[:1], strict=True))

    def held(self, arranged: Arrange) -> None:
        """A server was arranged, with what it restored in memory."""
        cut = self._leases.kept.cut
        if cut is not None and cut.manifest is not None and arranged.restore == cut.folder:
            cut.lives[arranged.index] = arranged.life

    def drop(self, now: float) -> None:
        """The cut under way comes to nothing."""
        if self._taking is not None:
            self._taking = None
            self._not_before = now + AGAIN_SECS

    def kept(self, complete: Iterable[str]) -> set[str]:
        """Which folders are to stay. complete: those of cuts that have a manifest."""
        last = self._leases.kept.cut
        known = sorted(name for name in complete if last is not None and name <= last.folder)
        keep = known[-self._when.keep :] if self._when.keep else known
        return {*keep, *([self._taking.name] if self._taking else [])}


def state_at_cut(leases: Leases, course: Job, progress: Iterable[Progress]) -> JobState:
    """The course of the job at a cut that was taken after the copy `course`. progress: of each lease, at the cut.

    A task may be there with two leases: one that was revoked, and the one after it.
    """
    for part in sorted(progress, key=lambda part: part.task.attempt):
        number = part.task.attempt
        whole = part.rows >= part.task.rows
        if whole and number in leases.kept.leases:
            leases.kept.leases[number].pushed = part
        task = course.claim(part.task, number)
        if task is None:
            continue
        if (
            task.skip != part.task.skip
        ):  # the part of an earlier lease, which was counted when that was revoked
            course.give_back(task)
        elif whole:
            course.done(report_of(part), leases.kept.seconds)
        else:
            course.give_back(task, report_of(part) if part.rows else None)
    return course.kept()
