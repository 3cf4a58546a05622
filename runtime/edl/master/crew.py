"""The crew: as many workers and parameter servers as are wanted, each replaced when it ends before the job does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from edl.cluster import Change, Instance, NoRoomError, Reason, Role, Room
from edl.errors import ClusterError
from edl.master.leases import Leases
from edl.master.parameters import Gain
from edl.master.servers import Servers
from edl.tasks.failed import Failed

GRACE = 20.0  # seconds that a worker has to give back what it holds; a server has nothing to give back
START_SECS = 30.0  # after which the cluster knows an instance that it was asked for
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
class _Luck:
    """How many instances ended in a row with nothing gained in between; what was gained by then."""

    fruitless: int = 0
    gained: Gain = ()

    def ended(self, change: Change, gained: Gain) -> None:
        before = 0 if gained > self.gained else self.fruitless
        self.fruitless = before + (change.reason not in _NOBODYS_FAULT and not change.remedied)
        self.gained = max(self.gained, gained)

    @property
    def wait(self) -> float:
        """Seconds: the first is replaced at once, the next ones after longer and longer."""
        return 0.0 if self.fruitless <= 1 else min(LONGEST_WAIT, 0.1 * 2 ** (self.fruitless - 2))


@dataclass
class _Post:
    """A name, and who has it, which may be a worker that stands in for a server.

    started: the second at which it was last. not_before: the second at which it may be started again. dismissed: told
    to end. waits: there is no room for it; refusals: the cluster said so so many times in a row. luck: of those who had
    the name. ending: how the last of them ended, in words; empty where that was nobody's wish but ours.
    """

    role: Role
    incarnation: int = -1
    state: Change | None = None
    started: float = 0.0
    not_before: float = 0.0
    relaunches: int = 0
    dismissed: bool = False
    waits: bool = False
    refusals: int = 0
    luck: _Luck = field(default_factory=_Luck)
    ending: str = ""

    @property
    def vacant(self) -> bool:
        return self.state is None or self.state.state == "ended" or self.waits

    def has_been(self, incarnation: int) -> None:
        """A start of the name is known; if it is not ours, a master before us gave it, and those before."""
        if incarnation > self.incarnation:
            self.incarnation, self.relaunches = incarnation, max(self.relaunches, incarnation)


class Crew:
    """Decides which instances are started and stopped. It asks nothing of a cluster itself: `orders` are carried out by
    who calls.

    patience: so many ends of a role's instances in a row, with nothing done for good in between, and the job has
    failed; 0: as many as are reasonable. room: how many instances there may be at once; None: all that are wanted.
    """

    room: Room | None = None

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
        leases.parameters.want(workers)
        self._posts: dict[str, _Post] = {}
        self._patience: dict[Role, int] = {
            "worker": patience or max(6, 3 * workers),
            "ps": patience or max(6, 3 * len(servers or ())),
        }
        self._luck: dict[Role, _Luck] = {"worker": _Luck(), "ps": _Luck()}
        self._log = log
        self._starved: dict[Role, tuple[int, str]] = {}  # how often they ran out of memory, and the last hint

    def found(self, changes: list[Change], now: float) -> None:
        """What the cluster lists: after a start of the master, or when a watch was broken."""
        for change in changes:
            self.changed(change, now)
        listed = {change.instance.name for change in changes}
        kept = self._leases.kept
        known = [Instance(name, "worker", member.incarnation) for name, member in kept.members.items()]
        known += [
            Instance(place.instance, "ps", place.incarnation)
            for place in kept.servers
            if place.instance.startswith("ps-")
        ]
        for instance in known:
            post = self._posts.setdefault(instance.name, _Post(instance.role))
            post.has_been(instance.incarnation)
            if instance.name not in listed and post.state is None:  # it ended while nobody looked
                self.changed(Change(instance, "ended", reason="lost"), now)
        self._miss({change.instance.key for change in changes}, now)

    def _miss(self, listed: set[tuple[str, int]], now: float) -> None:
        """Instances that were there, or must be by now, and are not listed ended while nobody looked."""
        for post in list(self._posts.values()):
            if post.vacant or post.state is None or post.state.instance.key in listed:
                continue
            if post.state.state == "running" or now - post.started > START_SECS:
                self.changed(Change(post.state.instance, "ended", reason="lost"), now)

    def changed(self, change: Change, now: float) -> None:
        """Something became of an instance."""
        name, incarnation = change.instance.key
        post = self._post(change.instance)
        if post is None:
            return
        post.state, post.waits, post.refusals = change, False, 0
        if change.state != "ended" or self._leases.finished:
            return
        if change.reason == "no room":
            post.not_before = now + LONGEST_WAIT
            self._wait_for_room(post)
            return
        why = _in_words(change)
        post.ending = "" if change.reason == "stopped" else why
        if change.reason == "out of memory":  # tell it also of who held nothing, or had not begun
            self._starved[post.role] = (self._starved.get(post.role, (0, ""))[0] + 1, change.hint)
            self._leases.note(f"{name} {why}")
        if self._servers is not None:
            self._servers.lost(name, incarnation, now, why)
        self._leases.lost(name, incarnation, now, "" if change.reason == "out of memory" else why)
        self._count(post, change, why)
        post.not_before = now + max(self._luck[post.role].wait, post.luck.wait)

    def orders(self, now: float) -> list[Order]:
        """What to ask of the cluster now; what is ordered counts as done."""
        if self._leases.finished:
            return []
        self._seat_stand_ins()
        found = self._dismiss_silent(now) + self._make_room()
        names: list[tuple[str, Role]] = [(f"ps-{index}", "ps") for index in range(len(self._servers or ()))]
        names += [(f"worker-{number}", "worker") for number in range(self.wanted)]
        free = math.inf if self.room is None else self.room.slots - len(self._there)
        for name, role in names:
            post = self._posts.setdefault(name, _Post(role))
            if not post.vacant or (role == "ps" and self._is_stood_in(name)):
                continue
            if now < post.not_before:
                free -= role == "ps"  # no worker takes its place meanwhile
                continue
            instance = _next(post, name)
            if free > 0:
                free -= 1
                post.waits, post.started = False, now
                found.append(Order(instance))
            else:
                self._wait_for_room(post)
        return found

    def resized(self, room: Room) -> None:
        """The cluster has room for so many instances from now on; who waits need not wait longer."""
        self.room = room
        self._leases.parameters.want(self._possible)
        for post in self._posts.values():
            if post.waits:
                post.not_before, post.refusals = 0.0, 0

    def scale(self, workers: int) -> list[Order]:
        """Have so many workers from now on; who is to leave."""
        self.wanted = workers
        self._leases.parameters.want(self._possible)
        there = self._there
        return [
            _dismiss(*there[name])
            for name in there
            if name.startswith("worker-") and _number(name) >= workers
        ]

    def refused(self, instance: Instance, error: ClusterError, now: float) -> None:
        """The cluster did not start it. For a server that it has no room for, a worker stands in."""
        post = self._posts[instance.name]
        if isinstance(error, NoRoomError):
            post.refusals += 1
            if post.refusals == 1:
                self._leases.note(f"{instance.name} waits: {error.message}")
            post.not_before = now + min(LONGEST_WAIT, 0.1 * 2 ** min(10, post.refusals - 1))
            self._wait_for_room(post)
            return
        change = Change(instance, "ended", reason="failed", detail=error.message)
        self.changed(change, now)

    @property
    def posts(self) -> dict[str, tuple[Change, int]]:
        """The last change of each name, and how often it was started again."""
        return {name: (post.state, post.relaunches) for name, post in self._posts.items() if post.state}

    def ending(self, name: str) -> str:
        """How the start of a name before this one ended, in words; empty: there was none, or we stopped it."""
        return self._posts[name].ending

    @property
    def notes(self) -> tuple[str, ...]:
        """What to do better next time."""
        return tuple(
            f"{_WORDS[role]} ran out of memory {'once' if times == 1 else f'{times} times'}{hint and f'; {hint}'}"
            for role, (times, hint) in self._starved.items()
        )

    @property
    def waiting(self) -> list[str]:
        """Those that there is no room for."""
        return [name for name, post in self._posts.items() if post.waits]

    @property
    def workers(self) -> list[str]:
        """Those that run."""
        return [
            name
            for name, post in self._posts.items()
            if post.role == "worker" and post.state is not None and post.state.state == "running"
        ]

    @property
    def running(self) -> int:
        return sum(change.state == "running" for change, _ in self.posts.values())

    @property
    def starting(self) -> int:
        """How many were ordered and do not run yet."""
        return len(self._there) - self.running

    def _dismiss_silent(self, now: float) -> list[Order]:
        """Processes that are there and say nothing: frozen, or hung. What they held went to others long ago."""
        found = []
        longest = SILENT_LEASES * self._leases.lease_secs
        for post in self._posts.values():
            runs = post.state is not None and post.state.state == "running"
            if post.state is None or not runs or post.dismissed:
                continue
            who = post.state.instance.key
            silence = self._servers.silence(*who, now) if self._servers is not None else None
            if silence is None:
                silence = self._leases.silence(*who, now)
            if silence > longest:
                self._leases.note(
                    f"{post.state.instance.name} says nothing for {silence:.0f} s, and is ended"
                )
                found.append(_dismiss(post, post.state.instance))
        return found

    # Room -----------------------------------------------------------------------------------------------------

    @property
    def _there(self) -> dict[str, tuple[_Post, Instance]]:
        """The posts that an instance has, which has not ended as far as is known."""
        return {
            name: (post, post.state.instance)
            for name, post in self._posts.items()
            if post.state is not None and not post.vacant
        }

    @property
    def _possible(self) -> int:
        """Workers that are wanted, as far as there is room for them."""
        if self.room is None:
            return self.wanted
        return min(self.wanted, max(0, self.room.slots - len(self._servers or ())))

    def _make_room(self) -> list[Order]:
        """Have the youngest workers leave that there is no room for any more; never one with the place of a server."""
        if self.room is None:
            return []
        staying = [(post, instance) for post, instance in self._there.values() if not post.dismissed]
        seated = {place.instance for place in self._leases.kept.servers}
        workers = [each for each in staying if each[0].role == "worker" and each[1].name not in seated]
        workers.sort(key=lambda each: (each[0].started, _number(each[1].name)), reverse=True)
        return [_dismiss(*each) for each in workers[: max(0, len(staying) - self.room.slots)]]

    def _wait_for_room(self, post: _Post) -> None:
        """For a server that there is no room for, a worker stands in."""
        post.waits = True
        if post.role == "ps" and post.state is not None:
            self._find_stand_in(post.state.instance)

    def _post(self, instance: Instance) -> _Post | None:
        """Which post an instance has; None of an earlier start, and of one that is known to have ended."""
        for post in self._posts.values():
            if post.state is not None and post.state.instance.key == instance.key:
                return post if post.state.state != "ended" else None
        post = self._posts.setdefault(instance.name, _Post(instance.role))
        if instance.incarnation < post.incarnation:
            return None
        post.has_been(instance.incarnation)
        return post

    # Stand-ins ------------------------------------------------------------------------------------------------

    def _is_stood_in(self, name: str) -> bool:
        """Whether a worker has the place of a server, or is to have it."""
        return self._servers is not None and self._servers.stand_in(_number(name)) is not None

    def _find_stand_in(self, server: Instance) -> None:
        """Have the last of the workers take the place, if another one goes on training."""
        if self._servers is None or self._is_stood_in(server.name):
            return
        taken = {place.instance for place in self._leases.kept.servers}
        free = [name for name in self.workers if name not in taken]
        if len(free) > 1:
            chosen = max(free, key=_number)
            self._servers.replace_by(_number(server.name), chosen, self._posts[chosen].incarnation)
            self._leases.note(f"there is no room for {server.name}: {chosen} takes its place")

    def _seat_stand_ins(self) -> None:
        """A worker that has registered as a server has its post no more, which is vacant until there is room."""
        for index, place in enumerate(self._leases.kept.servers):
            post = self._posts.get(place.instance)
            who = (place.instance, place.incarnation)
            if post is None or post.role == "ps" or post.state is None or not place.address:
                continue
            if post.state.instance.key == who and post.state.state == "running":
                ours = self._posts.setdefault(f"ps-{index}", _Post("ps"))
                ours.state, ours.waits, post.state = post.state, False, None

    def _count(self, post: _Post, change: Change, why: str) -> None:
        """An instance of the post has ended. A name that keeps ending waits, however well the others get on."""
        role, name = post.role, change.instance.name
        gained = self._leases.gained(role)
        luck = self._luck[role]
        luck.ended(change, gained)
        post.luck.ended(change, gained if role == "ps" else (self._leases.rows_of(name),))
        if luck.fruitless >= self._patience[role]:
            message = f"{luck.fruitless} {_WORDS[role]} in a row ended with nothing done for good"
            hint = "; ".join(filter(None, (change.hint, f"its log: {self._log(name)}")))
            self._leases.fail(Failed(ClusterError.code, f"{message}; the last, {name}, {why}", hint))


def _next(post: _Post, name: str) -> Instance:
    """The next start of the name; of a name that waits, the start that it waits for, unless that was given up."""
    if not post.waits:
        post.relaunches += post.incarnation >= 0
    if not post.waits or (post.state is not None and post.state.state == "ended"):
        post.incarnation += 1
    post.dismissed = False
    instance = Instance(name, post.role, post.incarnation)
    post.state = Change(instance, "pending")
    return instance


def _dismiss(post: _Post, instance: Instance) -> Order:
    post.dismissed = True
    return Order(instance, stop=True, grace=GRACE if post.role == "worker" else 0.0)


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def _in_words(change: Change) -> str:
    if change.reason == "done":
        return "left before the job was over"
    ran = "ran " if change.reason == "out of memory" else ""
    reason, code = change.reason or "ended", f"exit code {change.exit_code}"
    if change.detail.startswith(reason):
        return f"{ran}{change.detail}"
    known = f" ({code})" if change.exit_code is not None and change.exit_code > 0 else ""
    more = "" if change.detail in ("", code) else f": {change.detail}"
    return f"{ran}{reason}{known}{more}"
