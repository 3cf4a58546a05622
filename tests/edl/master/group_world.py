"""One job of all-reduce under one random schedule: everybody may die, freeze or leave, and every call may be lost.

The master's state machines are the real ones. A worker does what `docs/allreduce.md` promises, with a list of numbered
minibatches in the place of weights: all members of a group add the same one, or, when a member is lost, only some of
them do; the most advanced one gives its list to all members of the next group, and with it where their tasks stand.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from edl.master.state import MasterState
from edl.master.tasks.recovery import AllReduceRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Answer, JoinRequest, Request, WorkerGroup
from edl.tasks.task import CONTROL, Report, Task, TaskType
from edl.worker.outbox import Outbox
from tests.edl.master.listed_checkpoints import ListedCheckpoints
from tests.edl.master.test_schedules import finished

LEASE = 10.0
PIECE = 4096  # rows of a minibatch
LEADER: dict[TaskType, int] = {"evaluate": 1, "conclude": 1, "export": 1, "train": 6}
MEMBER: dict[TaskType, int] = {"evaluate": 1}

Piece = tuple[int, int]  # epoch, first row


@dataclass
class State:
    """State of a group. weights: all that was trained. open: tasks in their order, and their rows that are done. told:
    reports that the master may not have written down, by lease."""

    weights: list[Piece] = field(default_factory=list)
    open: list[tuple[Task, int]] = field(default_factory=list)
    told: dict[int, Report] = field(default_factory=dict)

    def copy(self) -> State:
        return State(list(self.weights), list(self.open), dict(self.told))


class Group:
    """A group on the network. log: training tasks that the leader has published. steps: number of minibatches that each
    member has computed. left: members that have left."""

    def __init__(self, worker_group: WorkerGroup) -> None:
        self.worker_group = worker_group
        self.arrived: dict[str, Worker] = {}
        self.state: State | None = None
        self.log: list[Task] = []
        self.steps: Counter[str] = Counter()
        self.left: set[str] = set()
        self.durable: set[int] = set()  # leases with reports that survive the master

    def fails(self, reduced: int, chance: random.Random) -> bool:
        """Whether a member sees that another one is gone, or gives up one that is frozen.

        reduced: so many minibatches it has applied. When all have computed the next one, it may have it yet.
        """
        if self.left:
            return not self.has_computed(reduced) or chance.random() < 0.5
        frozen = any(member.frozen for member in self.arrived.values())
        return frozen and not self.has_computed(reduced) and chance.random() < 0.2

    def has_computed(self, reduced: int) -> bool:
        """Whether all members have computed the minibatch after so many."""
        return all(self.steps[name] > reduced for name in self.worker_group.members)

    def arrive(self, worker: Worker) -> None:
        """The last one to do so has everybody take the state of the most advanced holder."""
        self.arrived[worker.outbox.instance] = worker
        if self.left or self.arrived.keys() != set(self.worker_group.members):
            return
        holders = [
            self.arrived[name].state for name in self.worker_group.members[: self.worker_group.holders or 1]
        ]
        best = max(holders, key=lambda state: len(state.weights))
        for state in holders:  # they have trained the same, though not as far
            assert best.weights[: len(state.weights)] == state.weights
        self.state = best.copy()


class Worker:
    """Does what a worker does, a step at a time. settling: tasks that are trained here, and maybe not everywhere."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.outbox = Outbox(name, incarnation)
        self.state = State()
        self.group: Group | None = None  # that it is in, or forms
        self.formed = False
        self.frozen = False
        self.without: tuple[str, ...] = ()
        self.after = self.read = self.reduced = 0
        self.settling: list[Report] = []
        self.flush = False
        self.writing: list[str] = []  # cuts
        self.resume = ""  # that it begins with, where nobody in its group has more
        self.join()

    @property
    def name(self) -> str:
        return self.outbox.instance

    @property
    def leads(self) -> bool:
        return self.group is not None and self.formed and self.group.worker_group.members[0] == self.name

    def request(self) -> Request:
        want = (LEADER if self.leads else MEMBER) if self.formed else {}
        return self.outbox.request(want)

    def join(self) -> None:
        """Wait for a group after the last one that it was told of."""
        self.outbox.join(JoinRequest(f"{self.name}:1", self.after, self.without))

    def leave(self) -> None:
        """Leave the group, which fails for the others."""
        if self.group is not None:
            self.group.left.add(self.name)
        for report in self.settling:
            self.state.told[report.task.attempt] = report
        self.settling, self.flush = [], False
        self.group, self.formed = None, False
        self.join()

    def form(self, group: Group) -> None:
        """Everybody has come: take the state."""
        assert group.state is not None
        self.state = group.state.copy()
        self.formed, self.read, self.reduced = True, 0, 0
        held = [Report(task, rows) for task, rows in self.state.open] if self.leads else []
        told = self.state.told.values() if self.leads else []
        self.outbox.enter(group.worker_group.number, held, told)

    # A minibatch ----------------------------------------------------------------------------------------------

    def train(self, group: Group, chance: random.Random) -> None:
        """Compute the next minibatch, if there is one; apply it when everybody has computed it."""
        if self.leads:
            while task := self.outbox.take("train"):
                group.log.append(task)
        self.state.open += [(task, 0) for task in group.log[self.read :]]
        self.read = len(group.log)
        if group.fails(self.reduced, chance):
            self.leave()
        elif not (self.state.open or self.flush):
            return
        elif group.steps[self.name] == self.reduced:
            group.steps[self.name] += 1
        elif group.has_computed(self.reduced):
            self.reduced += 1
            self._settle()
            if not self.flush:
                self._apply()
            self.flush = bool(self.settling) and self.settling[-1].task.settles

    def _settle(self) -> None:
        """All members have what was trained before."""
        for report in self.settling:
            self.state.told[report.task.attempt] = report
            if self.leads:
                self.outbox.report("done", report)
        self.settling = []

    def _apply(self) -> None:
        task, rows = self.state.open[0]
        self.state.weights.append((task.number, task.start + task.skip + rows))
        rows = min(rows + PIECE, task.rows)
        if rows < task.rows:
            self.state.open[0] = task, rows
            self.outbox.progress(Report(task, rows, rows // 512, 2.0 * rows))
        else:
            del self.state.open[0]
            self.settling.append(finished(task))


class World:
    """A job of two epochs. loses_disks: masters may be back on an empty one."""

    def __init__(self, seed: int, plan: Plan, workers: int, *, loses_disks: bool = False) -> None:
        self.loses_disks = loses_disks
        self.disk: set[str] = set()  # cuts that the master keeps
        self.random = random.Random(seed)  # noqa: S311 (a schedule, no secret)
        self.plan = plan
        self.now = 0.0
        self.notes: list[str] = []
        self.groups: dict[int, Group] = {}
        self.checkpoints: dict[str, list[Piece]] = {"": []}
        self.exports: list[Counter[Piece]] = []
        self.workers = [Worker(f"worker-{number}", 0) for number in range(workers)]
        self.late: list[Request] = []
        self.durable = b""
        self.start(None)

    # The master -------------------------------------------------------------------------------------------

    def start(self, kept: MasterState | None) -> None:
        if self.loses_disks and self.random.random() < 0.3:
            self.disk = set()
        checkpoints = ListedCheckpoints(self.disk.__contains__)
        self.master = TaskManager(
            self.plan,
            kept,
            AllReduceRecovery,
            lease_secs=LEASE,
            log=self.notes.append,
            checkpoints=checkpoints,
        )
        self.master.want(len(self.workers))
        self.write()

    def write(self) -> None:
        kept, marks = self.master.to_store()
        self.durable = encoding.encode(kept)
        self.master.on_written(marks)

    def restart(self) -> None:
        """The master dies, and is back with what it had written down; its connections are gone."""
        kept = encoding.decode(self.durable, MasterState)
        self.late.clear()
        self.now = max(self.now, kept.seconds)
        self.start(kept)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.master.tick(self.now)

    # Workers ------------------------------------------------------------------------------------------------

    def kill(self, worker: Worker, *, seen: bool | None = None) -> None:
        """The worker dies, and its name is started again. seen: by the cluster; else its lease runs out."""
        worker.leave()
        box = worker.outbox
        self.workers[self.workers.index(worker)] = Worker(box.instance, box.incarnation + 1)
        if seen or (seen is None and self.random.random() < 0.5):
            self.master.on_loss(box.instance, box.incarnation, self.now)

    def call(self, worker: Worker, *, lose_request: bool = False, lose_answer: bool = False) -> None:
        box = worker.outbox
        if lose_request:
            return
        if box.rejoin:
            self.register(worker, lose_answer=lose_answer)
            return
        request = worker.request()
        if self.random.random() < 0.02:
            self.late.append(request)
            return
        answer = self.master.exchange(request, self.now)
        if self.master.is_awaited and self.random.random() < 0.8:
            self.write()
            answer = self.master.answer(request)
        if not lose_answer:
            self.hear(worker, answer)

    def register(self, worker: Worker, *, lose_answer: bool = False) -> None:
        box = worker.outbox
        joined = self.master.join(box.instance, box.incarnation, self.now)
        self.write()
        if joined is None or box.generation not in (0, joined.generation):
            self.kill(worker)
        elif not lose_answer:
            if not box.generation:
                worker.resume = joined.resume
                worker.state = State(list(self.checkpoints[joined.resume]))
            box.apply_registration(joined)

    def hear(self, worker: Worker, answer: Answer) -> None:
        box = worker.outbox
        box.on_answer(answer)
        if box.rejoin:
            return
        group = worker.group
        if group is not None and worker.leads:
            group.durable |= worker.state.told.keys() - box.unstored_leases
        if worker.formed and box.regroup:
            worker.leave()
        elif group is None and box.found is not None:
            worker_group = box.found
            worker.group = self.groups.setdefault(worker_group.number, Group(worker_group))
            assert worker.group.worker_group == worker_group
            worker.after, worker.without, box.join_request = worker_group.number, (), None
            begins = not worker_group.holders and worker_group.members[0] == worker.name
            if begins and worker.resume and worker.resume not in self.disk:
                self.kill(worker)

    def act(self, worker: Worker) -> None:
        """Go on with what it is at."""
        group, box = worker.group, worker.outbox
        if box.rejoin or group is None:
            return
        if not worker.formed:
            self.form(worker, group)
            return
        if task := box.take(*CONTROL):
            if task.type == "export":
                self.exports.append(Counter(worker.state.weights))
            box.report("done", finished(task))
        for lease in group.durable & worker.state.told.keys():
            del worker.state.told[lease]
        worker.train(group, self.random)

    def form(self, worker: Worker, group: Group) -> None:
        if worker.name not in group.arrived:
            group.arrive(worker)
        elif group.state is not None and not group.fails(-1, self.random):
            worker.form(group)
        elif self.random.random() < 0.1:
            worker.leave()

    def freeze(self, worker: Worker) -> None:
        worker.frozen = True

    def take_cut(self, worker: Worker) -> None:
        """The leader copies its weights, when all that it did of earlier tasks is told."""
        if not worker.leads or worker.settling or worker.outbox.rejoin:
            return
        folder = f"cut-{len(self.checkpoints)}"
        part = Report(Task(0, "train"))
        if worker.state.open:
            task, rows = worker.state.open[0]
            part = Report(task, rows, rows // 512, 2.0 * rows, float(rows))
        self.checkpoints[folder] = list(worker.state.weights)
        worker.outbox.report("checkpoint", part, folder=folder)
        worker.writing.append(folder)

    def finish_cut(self, worker: Worker) -> None:
        if worker.writing:
            self.disk.add(worker.writing[-1])
            worker.outbox.report("checkpoint written", Report(Task(0, "train")), folder=worker.writing.pop())

    def name_as_slow(self, worker: Worker) -> None:
        if worker.leads and worker.group is not None:
            worker.without = (self.random.choice(worker.group.worker_group.members[1:] or ("",)),)
            worker.leave()

    # Schedules ------------------------------------------------------------------------------------------------

    def step(self) -> None:
        worker = self.random.choice(self.workers)
        if worker.frozen:
            worker.frozen = self.random.random() > 0.05
        actions: dict[Callable[[Worker], object], int] = {
            self.call: 45,
            self.act: 90,
            partial(self.call, lose_request=True): 5,
            partial(self.call, lose_answer=True): 5,
            lambda _: self.write(): 3,
            self.kill: 2,
            partial(self.kill, seen=True): 1,
            self.freeze: 1,
            lambda _: self.restart(): 1,
            self.take_cut: 2,
            self.finish_cut: 2,
            self.name_as_slow: 1,
            lambda _: self.pass_time(self.random.random() / 2): 20,
            lambda _: self.pass_time(self.random.random() * LEASE / 2): 1,
            lambda _: self.deliver_late(): 2,
        }
        (action,) = self.random.choices(list(actions), list(actions.values()))
        if not worker.frozen:
            action(worker)

    def deliver_late(self) -> None:
        """A request that was on its way for long arrives; nobody waits for the answer any more."""
        if self.late:
            self.master.exchange(self.late.pop(), self.now)

    def finish(self) -> None:
        """From now on nothing goes wrong."""
        for _ in range(5_000):
            if self.master.is_finished:
                return
            for worker in list(self.workers):
                worker.frozen = False
                self.call(worker)
                if worker in self.workers:
                    self.act(worker)
            self.pass_time(0.02)
        raise AssertionError("the job does not end")


def run(seed: int, plan: Plan, *, workers: int = 3, steps: int = 800, loses_disks: bool = False) -> World:
    world = World(seed, plan, workers, loses_disks=loses_disks)
    for _ in range(steps):
        if world.master.is_finished:
            break
        world.step()
    world.finish()
    return world
