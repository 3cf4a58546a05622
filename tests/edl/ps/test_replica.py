"""A9 by random schedules: whatever dies or is repeated between pushes, servers hold what the rounds make serially."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edl.ps import messages as msg
from edl.ps import partitioning
from edl.ps.checkpoint.content import Mode
from edl.ps.gradients import Gradients, RowGradients
from edl.ps.replica import Replica
from edl.ps.rounds import Rounds
from edl.ps.store import ParameterStore
from edl.spec import RowLimits
from tests.edl.ps.servers import ADAM, TABLES, definition, first_values, progress

MODEL = definition(ADAM)
SERVERS, RATE, IDS = 2, 0.1, 12
PLACEMENT = partitioning.Placement(MODEL.dense, SERVERS)


class Gradient:
    """Of one minibatch: of all parameters and of some rows, a function of its number."""

    def __init__(self, number: int) -> None:
        rng = np.random.default_rng(number)
        self.rows = int(rng.integers(1, 100))
        self.dense = {one.name: rng.normal(size=one.shape).astype(np.float32) for one in MODEL.dense}
        self.tables = {}
        for spec in TABLES:
            ids = rng.choice(IDS, int(rng.integers(0, IDS)), replace=False)
            self.tables[spec.name] = (ids, rng.normal(size=(len(ids), spec.dim)).astype(np.float32))

    def arrays(self, server: int) -> list[np.ndarray]:
        """As they are pushed to the server."""
        arrays = [PLACEMENT.flat(self.dense, server)]
        for ids, values in self.tables.values():
            part = partitioning.split(ids, SERVERS)[server]
            arrays += [part.ids, part.of(values)]
        return arrays


def serial(gradients: Sequence[Gradient]) -> Gradients:
    """The mean of a round, weighted by rows, reckoned over whole tables in float64."""
    rows = sum(gradient.rows for gradient in gradients)
    dense = {
        one.name: sum(each.dense[one.name] * (each.rows / rows) for each in gradients) for one in MODEL.dense
    }
    tables = {}
    for spec in TABLES:
        sums = np.zeros((IDS, spec.dim))
        touched: set[int] = set()
        for each in gradients:
            ids, values = each.tables[spec.name]
            sums[ids] += values.astype(np.float64) * (each.rows / rows)
            touched |= set(ids.tolist())
        ids = np.array(sorted(touched), np.int64)
        tables[spec.name] = RowGradients(ids, sums[ids].astype(np.float32))
    return Gradients(partitioning.Placement(MODEL.dense, 1).flat(dense, 0), tables, RATE, rows)


class Worker:
    """name: of its instance; one lease, and one gradient at a time."""

    def __init__(self, name: str, lease: int, incarnation: int) -> None:
        self.name = name
        self.lease = lease
        self.incarnation = incarnation
        self.sequence = 0
        self.rows = 0
        self.ticket = 0
        self.pushed = 0  # how many servers have it


class World:
    def __init__(self, size: int, workers: int, limits: RowLimits) -> None:
        mode, model = Mode("sync", size), msgspec.structs.replace(MODEL, limits=limits)
        self.rounds = Rounds(size)
        self.terms = [Replica(msg.Arrange(i, 0, 0, ("",) * SERVERS, mode), None) for i in range(SERVERS)]
        for index, replica in enumerate(self.terms):
            state = [np.zeros(2, np.float32)] if index == 0 else []
            replica.define(model, [PLACEMENT.flat(first_values(), index), *state])
            replica.begin()
        self.reference = ParameterStore(
            model, 0, 1, partitioning.Placement(MODEL.dense, 1).flat(first_values(), 0)
        )
        self.gradients: dict[int, Gradient] = {}  # by ticket
        self.applied: dict[int, int] = {}  # rows by lease
        self.leases = workers
        self.workers = [Worker(f"w{i}", i, 0) for i in range(workers)]
        self.tickets: dict[int, Worker] = {}

    def do(self, action: str, number: int) -> None:
        getattr(self, action)(self.workers[number % len(self.workers)])

    def ask(self, worker: Worker) -> None:
        answer = self.rounds.ask(worker.name, worker.incarnation, worker.lease, self.rounds.step)
        if isinstance(answer, int) and answer != worker.ticket:
            worker.ticket, worker.pushed = answer, 0
            worker.sequence += 1
            self.gradients[answer] = Gradient(answer)
            self.tickets[answer] = worker

    def push(self, worker: Worker) -> None:
        """To the next server."""
        if worker.ticket and worker.pushed < SERVERS:
            self._push(worker, worker.pushed)
            worker.pushed += 1

    def push_again(self, worker: Worker) -> None:
        """The answer was lost."""
        if worker.ticket and worker.pushed:
            self._push(worker, worker.pushed - 1)

    def confirm(self, worker: Worker) -> None:
        if worker.ticket and worker.pushed == SERVERS:
            if self.rounds.confirm(worker.ticket):
                worker.rows += self.gradients[worker.ticket].rows
            worker.ticket = 0

    def die(self, worker: Worker) -> None:
        self.rounds.revoke([worker.lease])
        told = self.terms[0].revoke([worker.lease])
        assert sum(part.rows for part in told) == self.applied.get(worker.lease, 0)
        self.leases += 1
        self.workers[self.workers.index(worker)] = Worker(worker.name, self.leases, worker.incarnation + 1)

    def flush(self, worker: Worker) -> None:
        self.rounds.flush()

    def commit(self, worker: Worker) -> None:
        tickets = self.rounds.begin()
        if not tickets:
            return
        for replica in (*self.terms[::-1], *self.terms):  # each twice: an answer was lost
            replica.commit(self.rounds.step + 1, tickets)
        self.rounds.on_commit()
        self.reference.apply(serial([self.gradients[ticket] for ticket in tickets]))
        for ticket in tickets:
            lease = self.tickets[ticket].lease
            self.applied[lease] = self.applied.get(lease, 0) + self.gradients[ticket].rows

    def check(self) -> None:
        ids = {name: np.arange(IDS) for name in self.reference.tables}
        found: dict[str, np.ndarray] = {}
        blocks: dict[str, list[np.ndarray]] = {name: [] for name in ids}
        parts = partitioning.split(np.arange(IDS), SERVERS)
        for index, replica in enumerate(self.terms):
            pull = msg.Pull(0, tuple(ids), dense=True)
            pulled, (flat, *rows) = replica.pull(pull, [parts[index].ids] * len(ids))
            assert pulled.version.step == self.rounds.step
            found |= PLACEMENT.unflat(flat, index)
            for name, block in zip(ids, rows, strict=True):
                blocks[name].append(block)
        expected = partitioning.Placement(MODEL.dense, 1).unflat(self.reference.flat.read(), 0)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-3)
        for name, each in ids.items():
            rows_found = partitioning.join_blocks(parts, blocks[name])
            assert sum(len(replica.require_store().table(name)) for replica in self.terms) == len(
                self.reference.table(name)
            )
            np.testing.assert_allclose(
                rows_found, self.reference.table(name).read(each), rtol=1e-4, atol=1e-3
            )

    def _push(self, worker: Worker, server: int) -> None:
        gradient = self.gradients[worker.ticket]
        header = msg.Push(
            0, worker.name, worker.incarnation, worker.sequence, RATE, gradient.rows, tuple(gradient.tables),
            ticket=worker.ticket, progress=progress(worker.lease, worker.rows + gradient.rows) if not server else None,
        )  # fmt: skip
        assert self.terms[server].push(header, gradient.arrays(server))


ACTIONS: Sequence[str] = ("ask", "push", "push", "push_again", "confirm", "die", "flush", "commit")


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([RowLimits(), RowLimits(min_count=2, ttl_steps=3)]),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2)), min_size=20, max_size=80),
)
def test_a9_every_schedule_ends_in_the_weights_of_its_rounds(
    size: int, workers: int, limits: RowLimits, actions: list[tuple[str, int]]
) -> None:
    world = World(size, workers, limits)
    for action, number in actions:
        world.do(action, number)
    for _ in range(2):  # and every schedule has rounds
        for number in range(workers):
            for action in ("ask", "push", "push", "confirm", "flush", "commit"):
                world.do(action, number)
    assert world.rounds.step
    world.check()
