"""The crew: as many workers and parameter servers as are wanted, each replaced when it ends before the job does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from edl.cluster import Change, Instance, Reason, Role
from edl.errors import ClusterError
from edl.master.leases import Leases
from edl.master.servers import Servers
from edl.tasks.failed import Failed

GRACE = 20.0  # seconds that a worker has to give back what it holds; a server has nothing to give back
LONGEST_WAIT = 5.0  # seconds until an instance that keeps ending is started again
SILENT_LEASES = 3  # of silence after which a process that was given up is ended, and another takes its name
_NOBODYS_FAULT: frozenset[Reason] = frozenset({"preempted", "stopped"})
_WORDS: dict[Role, str] = {"worker": "workers", "ps": "parameter servers"}


class Order(msgspec.Struct, frozen=True):
    """What to ask of the cluster. grace: seconds to leave that an instance has that is stopped."""

    instance: Instance
    stop: bool = False
    grace: float = 0.0


@dataclass
class _Post:
    """A name, and who has it. not_before: the second at which it may be started again. dismissed: told to end."""

    role: Role
    incarnation: int = -1
    state: Change | None = None
    not_before: float = 0.0
    relaunches: int = 0
    dismissed: bool = False

    @property
    def vacant(self) -> bool:
        return self.incarnation < 0 or (self.state is not None and self.state.state == "ended")


@dataclass
class _Luck:
    """Of the instances of a role: how many ended in a row with nothing gained in between; what was gained by then."""

    patience: int
    fruitless: int = 0
    gained: int = 0


class Crew:
    """Decides which instances are started and stopped. It asks nothing of a cluster itself: `orders` are carried out by
    who calls.

    patience: so many ends of a role's instances in a row, with nothing done for good in between, and the job has
    failed; 0: as many as are reasonable.
    """

    def __init__(
        self,
        leases: Leases,
        workers: int,
        servers: Servers | None = None,
        *,
        patience: int = 0,
        log: Callable[[str], str] = str,
    ) -> None:
        self._leases = leases
        self._servers = servers
        self.wanted = workers
        self._posts: dict[str, _Post] = {}
        self._luck: dict[Role, _Luck] = {
            "worker": _Luck(patience or max(6, 3 * workers)),
            "ps": _Luck(patience or max(6, 3 * len(servers or ()))),
        }
        self._log = log

    def found(self, changes: list[Change], now: float) -> None:
        """What the cluster lists: after a start of the master, or when a watch was broken."""
        for change in changes:
            self.changed(change, now)
        listed = {change.instance.name for change in changes}
        kept = self._leases.kept
        known = [Instance(name, "worker", member.incarnation) for name, member in kept.members.items()]
        known += [
            Instance(place.instance, "ps", place.incarnation) for place in kept.servers if place.instance
        ]
        for instance in known:
            post = self._posts.setdefault(instance.name, _Post(instance.role))
            post.incarnation = max(post.incarnation, instance.incarnation)
            if instance.name not in listed and post.state is None:  # it ended while nobody looked
                self.changed(Change(instance, "ended", reason="lost"), now)

    def changed(self, change: Change, now: float) -> None:
        """Something became of an instance."""
        name, incarnation = change.instance.key
        post = self._posts.setdefault(name, _Post(change.instance.role))
        if incarnation < post.incarnation or (incarnation == post.incarnation and _ended(post.state)):
            return
        post.incarnation, post.state = incarnation, change
        if change.state != "ended" or self._leases.finished:
            return
        why = _in_words(change)
        if self._servers is not None:
            self._servers.lost(name, incarnation, now, why)
        self._leases.lost(name, incarnation, now, why)
        self._count(change, why)
        post.not_before = now + self._wait(post.role)

    def orders(self, now: float) -> list[Order]:
        """What to ask of the cluster now; what is ordered counts as done."""
        if self._leases.finished:
            return []
        found = self._dismiss_silent(now)
        names: list[tuple[str, Role]] = [(f"ps-{index}", "ps") for index in range(len(self._servers or ()))]
        names += [(f"worker-{number}", "worker") for number in range(self.wanted)]
        for name, role in names:
            post = self._posts.setdefault(name, _Post(role))
            if post.vacant and now >= post.not_before:
                post.relaunches += post.incarnation >= 0
                post.incarnation += 1
                post.dismissed = False
                post.state = Change(Instance(name, role, post.incarnation), "pending")
                found.append(Order(post.state.instance))
        return found

    def scale(self, workers: int) -> list[Order]:
        """Have so many workers from now on; who is to leave."""
        self.wanted = workers
        leaving = [
            post.state.instance
            for name, post in self._posts.items()
            if post.state is not None
            and post.role == "worker"
            and not post.vacant
            and int(name.rpartition("-")[2]) >= workers
        ]
        return [Order(instance, stop=True, grace=GRACE) for instance in leaving]

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
            silence = self._leases.silence(name, post.incarnation, now)
            if self._servers is not None:
                silence = max(silence, self._servers.silence(name, post.incarnation, now))
            if silence > longest:
                post.dismissed = True
                grace = GRACE if post.role == "worker" else 0.0
                found.append(Order(post.state.instance, stop=True, grace=grace))
        return found

    def _count(self, change: Change, why: str) -> None:
        name, role = change.instance.name, change.instance.role
        luck, gained = self._luck[role], self._leases.gained(role)
        luck.fruitless = 1 if gained > luck.gained else luck.fruitless + (change.reason not in _NOBODYS_FAULT)
        luck.gained = gained
        if luck.fruitless >= luck.patience:
            message = f"{luck.fruitless} {_WORDS[role]} in a row ended with nothing done for good"
            hint = f"its log: {self._log(name)}"
            self._leases.fail(Failed(ClusterError.code, f"{message}; the last, {name}, {why}", hint))

    def _wait(self, role: Role) -> float:
        """The first is replaced at once, the next ones after longer and longer."""
        fruitless = self._luck[role].fruitless
        return 0.0 if fruitless <= 1 else min(LONGEST_WAIT, 0.1 * 2 ** (fruitless - 2))


def _ended(change: Change | None) -> bool:
    return change is not None and change.state == "ended"


def _in_words(change: Change) -> str:
    if change.reason == "done":
        return "left before the job was over"
    code = "" if change.exit_code is None or change.exit_code <= 0 else f" (exit code {change.exit_code})"
    return f"{change.reason or 'ended'}{code}{f': {change.detail}' if change.detail else ''}"
