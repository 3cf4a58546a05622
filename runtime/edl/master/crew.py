"""The crew: as many workers as are wanted, each replaced when it ends before the job does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from edl.cluster import Change, Instance, Reason
from edl.errors import ClusterError
from edl.master.leases import Leases
from edl.tasks.failed import Failed

GRACE = 20.0  # seconds that a worker has to give back what it holds
LONGEST_WAIT = 5.0  # seconds until a worker that keeps ending is started again
SILENT_LEASES = 3  # of silence after which a process that was given up is ended, and another takes its name
_NOBODYS_FAULT: frozenset[Reason] = frozenset({"preempted", "stopped"})


class Order(msgspec.Struct, frozen=True):
    """What to ask of the cluster."""

    instance: Instance
    stop: bool = False


@dataclass
class _Post:
    """A name, and who has it. not_before: the second at which it may be started again. dismissed: told to end."""

    incarnation: int = -1
    state: Change | None = None
    not_before: float = 0.0
    relaunches: int = 0
    dismissed: bool = False

    @property
    def vacant(self) -> bool:
        return self.incarnation < 0 or (self.state is not None and self.state.state == "ended")


class Crew:
    """Decides which instances are started and stopped. It asks nothing of a cluster itself: `orders` are carried out by
    who calls.

    patience: so many ends in a row, with nothing done for good in between, and the job has failed.
    """

    def __init__(
        self, leases: Leases, workers: int, *, patience: int = 0, log: Callable[[str], str] = str
    ) -> None:
        self._leases = leases
        self.wanted = workers
        self._patience = patience or max(6, 3 * workers)
        self._posts: dict[str, _Post] = {}
        self._fruitless = 0
        self._done = 0
        self._log = log

    def found(self, changes: list[Change], now: float) -> None:
        """What the cluster lists: after a start of the master, or when a watch was broken."""
        for change in changes:
            self.changed(change, now)
        listed = {change.instance.name for change in changes}
        for name, member in self._leases.kept.members.items():
            post = self._posts.setdefault(name, _Post(member.incarnation))
            post.incarnation = max(post.incarnation, member.incarnation)
            if name not in listed and post.state is None:  # it ended while nobody looked
                instance = Instance(name, "worker", member.incarnation)
                self.changed(Change(instance, "ended", reason="lost"), now)

    def changed(self, change: Change, now: float) -> None:
        """Something became of an instance."""
        name, incarnation = change.instance.key
        post = self._posts.setdefault(name, _Post())
        if incarnation < post.incarnation or (incarnation == post.incarnation and _ended(post.state)):
            return
        post.incarnation, post.state = incarnation, change
        if change.state != "ended" or self._leases.finished:
            return
        why = _in_words(change)
        self._leases.lost(name, incarnation, now, why)
        self._count(name, change, why)
        post.not_before = now + self._wait()

    def orders(self, now: float) -> list[Order]:
        """What to ask of the cluster now; what is ordered counts as done."""
        if self._leases.finished:
            return []
        found = self._dismiss_silent(now)
        for number in range(self.wanted):
            post = self._posts.setdefault(f"worker-{number}", _Post())
            if post.vacant and now >= post.not_before:
                post.relaunches += post.incarnation >= 0
                post.incarnation += 1
                post.dismissed = False
                post.state = Change(Instance(f"worker-{number}", "worker", post.incarnation), "pending")
                found.append(Order(post.state.instance))
        return found

    def scale(self, workers: int) -> list[Order]:
        """Have so many workers from now on; who is to leave."""
        self.wanted = workers
        leaving = [
            post.state.instance
            for name, post in self._posts.items()
            if post.state is not None and not post.vacant and int(name.rpartition("-")[2]) >= workers
        ]
        return [Order(instance, stop=True) for instance in leaving]

    def refused(self, instance: Instance, error: ClusterError, now: float) -> None:
        """The cluster did not start it."""
        change = Change(instance, "ended", reason="failed", detail=error.message)
        self.changed(change, now)

    @property
    def posts(self) -> dict[str, tuple[Change, int]]:
        """The last change of each name, and how often it was started again."""
        return {name: (post.state, post.relaunches) for name, post in self._posts.items() if post.state}

    @property
    def running(self) -> int:
        return sum(change.state == "running" for change, _ in self.posts.values())

    def _dismiss_silent(self, now: float) -> list[Order]:
        """Processes that are there and say nothing: frozen, or hung. What they held went to others long ago."""
        found = []
        longest = SILENT_LEASES * self._leases.lease_secs
        for name, post in self._posts.items():
            runs = post.state is not None and post.state.state == "running"
            if post.state is None or not runs or post.dismissed:
                continue
            if self._leases.silence(name, post.incarnation, now) > longest:
                post.dismissed = True
                found.append(Order(post.state.instance, stop=True))
        return found

    def _count(self, name: str, change: Change, why: str) -> None:
        done = self._leases.gained
        self._fruitless = 1 if done > self._done else self._fruitless + (change.reason not in _NOBODYS_FAULT)
        self._done = done
        if self._fruitless >= self._patience:
            hint = f"its log: {self._log(name)}"
            message = f"{self._fruitless} workers in a row ended with nothing done for good; the last, {name}, {why}"
            self._leases.fail(Failed(ClusterError.code, message, hint))

    def _wait(self) -> float:
        """The first is replaced at once, the next ones after longer and longer."""
        return 0.0 if self._fruitless <= 1 else min(LONGEST_WAIT, 0.1 * 2 ** (self._fruitless - 2))


def _ended(change: Change | None) -> bool:
    return change is not None and change.state == "ended"


def _in_words(change: Change) -> str:
    if change.reason == "done":
        return "left before the job was over"
    code = "" if change.exit_code is None or change.exit_code <= 0 else f" (exit code {change.exit_code})"
    return f"{change.reason or 'ended'}{code}{f': {change.detail}' if change.detail else ''}"
