"""The rounds of sync: by hand, and by random schedules of workers that die, repeat themselves and come too late."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from edl.ps.round_tickets import Rounds


def commit(rounds: Rounds) -> tuple[int, ...]:
    """The tickets of the round, if it was complete."""
    tickets = rounds.begin()
    if tickets:
        rounds.on_commit()
    return tickets


def test_a_round_is_complete_when_all_its_tickets_landed() -> None:
    rounds = Rounds(2)
    one, two = rounds.ask("a", 0, 1, 0), rounds.ask("b", 0, 2, 0)
    assert isinstance(one, int) and isinstance(two, int)
    assert rounds.confirm(two) and not rounds.begin()
    assert rounds.confirm(one)
    assert commit(rounds) == (one, two)
    assert (rounds.step, rounds.is_idle) == (1, True)


def test_one_worker_with_two_tickets_accumulates() -> None:
    rounds = Rounds(2)
    for _ in range(2):
        ticket = rounds.ask("a", 0, 1, 0)
        assert isinstance(ticket, int) and rounds.confirm(ticket)
    assert commit(rounds) == (1, 2)


def test_a_gradient_of_an_earlier_version_is_stale() -> None:
    rounds = Rounds(1)
    assert rounds.ask("a", 0, 1, 0) == 1
    assert rounds.ask("b", 0, 2, 0) == "wait"
    rounds.confirm(1)
    commit(rounds)
    assert rounds.ask("b", 0, 2, 0) == "stale"
    assert rounds.ask("b", 0, 2, 1) == 2
    assert rounds.stale == 1


def test_no_ticket_is_given_while_a_round_is_committed() -> None:
    rounds = Rounds(1)
    rounds.ask("a", 0, 1, 0)
    rounds.confirm(1)
    assert rounds.begin() == (1,)
    assert rounds.ask("b", 0, 2, 0) == "wait"
    assert not rounds.begin()
    rounds.on_commit()
    assert rounds.ask("b", 0, 2, 0) == "stale"


def test_a_ticket_with_a_lost_answer_is_given_again() -> None:
    rounds = Rounds(2)
    assert rounds.ask("a", 0, 1, 0) == rounds.ask("a", 0, 1, 0) == 1
    assert rounds.ask("b", 0, 2, 0) == 2


def test_landing_twice_is_landing_once() -> None:
    rounds = Rounds(1)
    rounds.ask("a", 0, 1, 0)
    assert rounds.confirm(1) and rounds.confirm(1)
    assert rounds.begin() == (1,)
    assert rounds.confirm(1)
    rounds.on_commit()
    assert rounds.confirm(1) and rounds.is_idle


def test_a_ticket_that_was_never_given_does_not_land() -> None:
    assert not Rounds(1).confirm(1)


def test_a_revoked_lease_loses_its_tickets_and_frees_their_places() -> None:
    rounds = Rounds(2)
    rounds.ask("a", 0, 1, 0)
    rounds.ask("b", 0, 2, 0)
    rounds.confirm(1)
    assert rounds.ask("c", 0, 3, 0) == "wait"
    rounds.revoke([1])
    assert rounds.ask("a", 0, 1, 0) == "revoked"
    assert rounds.ask("c", 0, 3, 0) == 3
    assert not rounds.confirm(1)
    assert rounds.confirm(2) and rounds.confirm(3)
    assert commit(rounds) == (2, 3)


def test_a_round_that_is_being_committed_is_beyond_recall() -> None:
    rounds = Rounds(1)
    rounds.ask("a", 0, 1, 0)
    rounds.confirm(1)
    rounds.begin()
    rounds.revoke([1])
    assert rounds.confirm(1)
    rounds.on_commit()
    assert rounds.step == 1


def test_a_flush_commits_what_landed() -> None:
    rounds = Rounds(3)
    rounds.ask("a", 0, 1, 0)
    rounds.confirm(1)
    assert not rounds.begin()
    rounds.flush()
    assert commit(rounds) == (1,)


def test_a_flush_waits_for_the_tickets_that_are_out() -> None:
    rounds = Rounds(3)
    rounds.ask("a", 0, 1, 0)
    rounds.ask("b", 0, 2, 0)
    rounds.confirm(1)
    rounds.flush()
    assert not rounds.begin() and not rounds.is_idle
    rounds.revoke([2])
    assert commit(rounds) == (1,)


def test_a_flush_of_nothing_commits_no_later_round() -> None:
    rounds = Rounds(2)
    rounds.flush()
    assert rounds.is_idle
    rounds.ask("a", 0, 1, 0)
    rounds.flush()
    rounds.confirm(1)
    assert not rounds.begin()


def test_a_flush_of_what_was_revoked_since_is_over() -> None:
    rounds = Rounds(2)
    rounds.ask("a", 0, 1, 0)
    rounds.confirm(1)
    rounds.ask("b", 0, 2, 0)
    rounds.flush()
    rounds.revoke([1])
    rounds.confirm(2)
    assert not rounds.begin()


def test_a_worker_that_starts_anew_leaves_no_ticket_behind() -> None:
    rounds = Rounds(1)
    rounds.ask("a", 0, 1, 0)
    assert rounds.ask("b", 0, 2, 0) == "wait"
    assert rounds.ask("a", 1, 3, 0) == 2
    assert not rounds.confirm(1)
    assert rounds.ask("a", 0, 1, 0) == "revoked"


# Random schedules -------------------------------------------------------------------------------------------


@dataclass
class Worker:
    """pulled: the step that it computed on. lost: it forgets its ticket, as when the answer does not come."""

    name: str
    lease: int
    incarnation: int = 0
    pulled: int = 0
    ticket: int = 0


@dataclass
class World:
    """Workers around rounds, and what must hold."""

    size: int
    workers: int
    rounds: Rounds = field(init=False)
    alive: dict[str, Worker] = field(init=False)
    leases: int = 0
    granted: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # ticket -> lease, step it was computed on
    starts: dict[int, tuple[str, int]] = field(default_factory=dict)  # ticket -> who has it
    owed: dict[str, list[int]] = field(default_factory=dict)  # leases that are to be revoked
    confirmed: set[int] = field(default_factory=set)
    dead: set[int] = field(default_factory=set)  # tickets of revoked leases, and of workers that started anew
    applied: list[tuple[int, ...]] = field(default_factory=list)
    committing: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.rounds = Rounds(self.size)
        self.alive = {}
        for number in range(self.workers):
            self.alive[f"w{number}"] = Worker(f"w{number}", self.lease())

    def lease(self) -> int:
        self.leases += 1
        return self.leases

    def do(self, action: str, name: str) -> None:
        getattr(self, action)(self.alive[name])
        self.check()

    def ask(self, worker: Worker) -> None:
        answer = self.rounds.ask(worker.name, worker.incarnation, worker.lease, worker.pulled)
        if answer != "revoked":
            self.dead |= {
                ticket
                for ticket, (name, start) in self.starts.items()
                if name == worker.name and start < worker.incarnation and ticket not in self.confirmed
            }
        if isinstance(answer, int):
            assert worker.pulled == self.rounds.step  # a stale gradient is never taken
            assert answer not in self.dead
            self.granted[answer] = (worker.lease, worker.pulled)
            self.starts[answer] = (worker.name, worker.incarnation)
            worker.ticket = answer
        elif answer == "stale":
            assert worker.pulled != self.rounds.step
            worker.pulled, worker.ticket = self.rounds.step, 0
        elif answer == "revoked":
            worker.lease, worker.ticket = self.lease(), 0

    def confirm(self, worker: Worker) -> None:
        if not worker.ticket:
            return
        taken = self.rounds.confirm(worker.ticket)
        assert taken == (worker.ticket not in self.dead)
        if taken:
            self.confirmed.add(worker.ticket)
        worker.ticket = 0

    def land_unheard(self, worker: Worker) -> None:
        """It lands, and will say so again."""
        ticket = worker.ticket
        self.confirm(worker)
        worker.ticket = ticket

    def forget(self, worker: Worker) -> None:
        """The answer to its request for a ticket is lost."""
        if worker.ticket not in self.confirmed:
            worker.ticket = 0

    def revoke(self, worker: Worker) -> None:
        """It is frozen: the lease is void, and it does not know. So are the leases of starts that have ended."""
        leases = {worker.lease, *self.owed.pop(worker.name, ())}
        self.rounds.revoke(leases)
        self.dead |= {
            ticket
            for ticket, (lease, _) in self.granted.items()
            if lease in leases and not self.beyond_recall(ticket)
        }

    def die(self, worker: Worker) -> None:
        """Its leases are revoked, and it starts anew."""
        self.revoke(worker)
        self.alive[worker.name] = Worker(worker.name, self.lease(), worker.incarnation + 1, self.rounds.step)

    def restart(self, worker: Worker) -> None:
        """It starts anew before anybody revokes its lease."""
        self.owed.setdefault(worker.name, []).append(worker.lease)
        self.alive[worker.name] = Worker(worker.name, self.lease(), worker.incarnation + 1, self.rounds.step)

    def leave(self, worker: Worker) -> None:
        """For good: others must not wait for it. One stays."""
        if len(self.alive) > 1:
            self.revoke(worker)
            del self.alive[worker.name]

    def flush(self, worker: Worker) -> None:
        self.rounds.flush()

    def commit(self, worker: Worker) -> None:
        if not self.committing:
            self.committing = self.rounds.begin()
            for ticket in self.committing:
                assert ticket in self.confirmed and ticket not in self.dead
                assert self.granted[ticket][1] == self.rounds.step
            assert len(self.committing) <= self.size
        else:
            step = self.rounds.step
            self.rounds.on_commit()
            assert self.rounds.step == step + 1
            self.applied.append(self.committing)
            self.committing = ()

    def beyond_recall(self, ticket: int) -> bool:
        return ticket in self.committing or any(ticket in tickets for tickets in self.applied)

    def check(self) -> None:
        every = [ticket for tickets in (*self.applied, self.committing) for ticket in tickets]
        assert len(every) == len(set(every))
        assert every == sorted(every)
        assert not self.dead & set(every)

    def finish(self) -> None:
        """Who is left goes on: whatever happened, rounds come."""
        step = self.rounds.step
        for _ in range(4 * (self.size + 2)):
            for name in list(self.alive):
                self.do("ask", name)
                self.do("confirm", name)
                self.do("commit", name)
        assert self.rounds.step > step
        while not self.rounds.is_idle:
            for name in list(self.alive):
                self.do("ask", name) if self.alive[name].ticket else None
                self.do("confirm", name)
            self.rounds.flush()
            self.do("commit", next(iter(self.alive)))
        taken = {ticket for tickets in self.applied for ticket in tickets}
        assert self.confirmed <= taken | self.dead


ACTIONS = (
    "ask",
    "confirm",
    "land_unheard",
    "forget",
    "revoke",
    "die",
    "restart",
    "leave",
    "flush",
    "commit",
    "commit",
)


@settings(max_examples=10 * settings().max_examples)
@given(
    st.integers(1, 3),
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3)), max_size=40),
)
def test_every_schedule_keeps_its_rounds(size: int, workers: int, actions: list[tuple[str, int]]) -> None:
    world = World(size, workers)
    for action, number in actions:
        names = list(world.alive)
        world.do(action, names[number % len(names)])
    world.finish()
