"""One job with parameter servers under one random schedule: its workers, losses, and changes of its servers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Literal

from edl.errors import JobError
from edl.jobs.failure import to_failed
from edl.ps.checkpoint.content import Mode, Progress
from edl.tasks.job_state import Plan
from edl.tasks.task import CONTROL, Report, Task, TaskType
from edl.worker.outbox import Outbox
from tests.edl.master.server_processes import Push, Server
from tests.edl.master.server_world import LEASE, World
from tests.edl.master.test_schedules import finished

PIECE = 4096  # rows of a push
WANT: dict[TaskType, int] = {"evaluate": 1, "conclude": 1, "export": 1, "train": 5}


class Worker:
    """Does what a worker does, a step at a time."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.outbox = Outbox(name, incarnation)
        self.task: Task | None = None
        self.done = 0  # rows of it that are pushed
        self.sequence = 0
        self.pending: Push | None = None  # one that was not answered
        self.generation = 0  # in which it was made


class Schedule(World):
    """A job of two epochs. deaths: of servers, too. halves: of workers between two pushes of one gradient, in async.
    copies: see `edl.spec.Checkpoints`. changes: of the number of servers."""

    def __init__(
        self,
        seed: int,
        plan: Plan,
        mode: Mode,
        *,
        servers: int,
        workers: int,
        deaths: bool,
        halves: bool,
        copies: Literal["files", "neighbours"],
        changes: bool = False,
    ) -> None:
        self.changes = changes
        self.deaths = deaths
        self.halves = halves
        self.acknowledged: set[tuple[int, int, int, int]] = set()  # generation, and the piece
        self.workers = [Worker(f"worker-{number}", 0) for number in range(workers)]
        self.exports = 0
        self.abandoned: set[tuple[int, int]] = set()  # pieces, by epoch and first row
        super().__init__(seed, plan, mode, servers=servers, copies=copies)

    # Workers ------------------------------------------------------------------------------------------------

    def call(self, worker: Worker, *, lose_request: bool = False, lose_answer: bool = False) -> None:
        box = worker.outbox
        if lose_request:
            return
        if box.rejoin:
            joined = self.master.join(box.instance, box.incarnation, self.now)
            self.write()
            if joined is None:
                self.replace(worker)
            elif not lose_answer:
                box.apply_registration(joined)
            return
        answer = self.master.exchange(box.request(WANT), self.now)
        if answer.tasks:
            self.write()  # a lease is written down before it is told
        if not lose_answer:
            box.on_answer(answer)

    def do(self, worker: Worker) -> None:
        """Push a piece of the task in hands, or finish it, or begin another."""
        task = worker.task
        if task is None:
            away = self.random.random() < 0.1
            worker.task = worker.outbox.take(*CONTROL, "train", away=away)
            worker.done, worker.pending = 0, None
        elif not worker.outbox.holds_lease(task):
            if worker.generation == self.master.state.generation:  # it was given up
                self.abandon(worker)
            worker.task = None
        elif task.type != "train" or (worker.pending is None and worker.done == task.rows):
            self.exports += task.type == "export"
            worker.outbox.report("done", finished(task))
            worker.task = None
        else:
            self.push(worker, task)

    def push(self, worker: Worker, task: Task) -> None:
        servers, first = worker.outbox.servers, self.machines[0]
        here = tuple(machine.address for machine in self.machines)
        if (
            servers is None
            or not self.together
            or (servers.generation, servers.addresses) != (first.at[0], here)
        ):
            return
        for machine in self.machines:
            machine.open = True
        worker.generation = first.at[0]
        push = worker.pending = worker.pending or self.next_push(worker, task)
        if self.mode.logs_updates and self.deaths and self.random.random() < 0.03:
            self.die_in(push)
            return
        reached = self.machines
        if (
            self.changes and self.mode.kind == "async" and self.random.random() < 0.1
        ):  # some servers answer later, when it is repeated
            reached = self.random.sample(self.machines, self.random.randrange(len(self.machines)))
            self.send(push, reached)
            return
        if self.halves and self.random.random() < 0.02:  # it dies between two pushes
            reached = self.random.sample(self.machines, self.random.randrange(len(self.machines)))
            self.kill_worker(worker)
        if self.mode.kind == "sync":  # a ticket of server 0 is good on all
            taken = [] if first.refuses(task.attempt) else reached
        else:
            taken = [machine for machine in reached if machine.takes(push)]
        if not self.send(push, taken):
            return
        if len(taken) < len(reached):
            self.abandon(worker)
            worker.outbox.report("given back", Report(task))
            worker.task = None
        elif len(taken) == len(self.machines):
            self.acknowledged.add((first.at[0], *push.piece))
        worker.pending = None

    def repeated(self) -> list[Push]:
        pending = [worker.pending for worker in self.workers if worker.pending is not None]
        return [push for push in pending if self.random.random() < 0.8]  # most

    def next_push(self, worker: Worker, task: Task) -> Push:
        start = task.start + task.skip + worker.done
        worker.done += min(PIECE, task.rows - worker.done)
        worker.sequence += 1
        progress = Progress(task, worker.done, -(-worker.done // 512), 2.0 * worker.done, float(worker.done))
        box = worker.outbox
        return Push((box.instance, box.incarnation), worker.sequence, (task.number, task.id, start), progress)

    def die_in(self, push: Push) -> None:
        """A server is killed when it has logged a push that some others have taken, before or after it applied it."""
        count = self.random.randrange(len(self.machines))
        self.send(push, self.machines[: count + 1])
        machine = self.machines[count]
        machine.alive = False
        self.see(machine)

    def replace(self, worker: Worker) -> None:
        new = Worker(worker.outbox.instance, worker.outbox.incarnation + 1)
        self.workers[self.workers.index(worker)] = new

    def abandon(self, worker: Worker) -> None:
        """The worker does not finish a push that some servers may have."""
        if worker.pending is not None:
            self.abandoned.add((worker.pending.piece[0], worker.pending.piece[2]))

    def kill_worker(self, worker: Worker) -> None:
        self.abandon(worker)
        self.replace(worker)
        if self.random.random() < 0.5:  # the cluster sees it; else the lease runs out
            self.master.on_loss(worker.outbox.instance, worker.outbox.incarnation, self.now)

    def drain(self, worker: Worker) -> None:
        pushing = worker.pending is not None  # it ends that first
        if worker.task is not None and worker.outbox.holds_lease(worker.task) and not pushing:
            worker.outbox.report("given back", Report(worker.task, worker.done))
            worker.task = None
            worker.outbox.give_back_received()

    def raise_error(self, worker: Worker) -> None:
        """A task fails in its middle, with a part of it pushed; once in a job."""
        if worker.task is not None and worker.task.type == "train" and not self.master.state.failures:
            self.abandon(worker)
            worker.outbox.report("failed", Report(worker.task), error=to_failed(OSError("no"), ""))
            worker.task = None

    # Instances ----------------------------------------------------------------------------------------------

    def kill_server(self) -> None:
        spared = (
            self.copies == "neighbours" and self.master.state.checkpoint is None
        )  # so that there is one to lose
        if self.deaths and not spared:
            machine = self.process(self.random.choice(self.master.state.homes))
            if machine.alive:
                machine.alive = False
                self.see(machine)

    def see(self, machine: Server) -> None:
        """The cluster tells of its end, now or later."""
        if self.random.random() < 0.7:
            self.servers.on_loss(machine.name, machine.incarnation, self.now, "was killed")

    def start_server(self, home: str = "") -> None:
        """A server registers; one that died is replaced first."""
        home = home or self.random.choice(self.master.state.homes)
        machine = self.process(home)
        if not machine.alive:
            self.servers.on_loss(machine.name, machine.incarnation, self.now, "was killed")
            if home not in self.master.state.homes:  # it was to replace another one, which is lost
                return
            machine = self.processes[home] = Server(home, machine.incarnation + 1)
        place = self.master.state.all_servers[self.master.state.homes.index(home)]
        if (place.incarnation, place.address) != (machine.incarnation, machine.address):
            assert self.servers.register(machine.name, machine.incarnation, machine.address, self.now)
            self.write()

    def scale(self) -> None:
        """A user changes the number of servers, or a node is to be emptied."""
        if not self.changes:
            return
        homes = self.master.state.homes
        with contextlib.suppress(JobError):
            if self.random.random() < 0.3 and self.master.state.server_change is None:
                self.servers.scale(len(self.servers), [self.random.choice(homes)])
            else:
                self.servers.scale(self.random.randint(1, 4))
        if self.random.random() < 0.8:
            self.write()

    # Schedules ----------------------------------------------------------------------------------------------

    def step(self) -> None:
        worker = self.random.choice(self.workers)
        actions: dict[Callable[[], object], int] = {
            partial(self.call, worker): 30,
            partial(self.do, worker): 60,
            partial(self.call, worker, lose_request=True): 4,
            partial(self.call, worker, lose_answer=True): 4,
            self.deliver: 40,
            partial(self.deliver, lose_request=True): 3,
            partial(self.deliver, lose_answer=True): 3,
            self.write_shard: 10,
            self.tick: 30,
            self.pass_time: 6,
            self.write: 3,
            self.start_server: 12,
            self.scale: 2,
            partial(self.kill_worker, worker): 2,
            self.kill_server: 2 if self.copies == "files" else 8,
            self.restart: 2,
            partial(self.drain, worker): 2,
            partial(self.raise_error, worker): 1,
        }
        (action,) = self.random.choices(list(actions), list(actions.values()))
        action()

    def pass_time(self) -> None:
        self.now += self.random.random() * LEASE / 2
        self.tick()

    def finish(self) -> None:
        """From now on nothing goes wrong."""
        for _ in range(5_000):
            if self.master.is_finished:
                return
            for home in list(self.master.state.homes):
                if home in self.master.state.homes:
                    self.start_server(home)
            self.tick()
            while self.calls or self.answers:
                self.deliver()
            self.write_shard()
            for worker in list(self.workers):
                self.call(worker)
                self.do(worker)
            self.now += 0.3
        raise AssertionError("the job does not end")


def run(
    seed: int,
    plan: Plan,
    mode: Mode,
    *,
    servers: int = 2,
    workers: int = 3,
    deaths: bool = True,
    halves: bool = False,
    copies: Literal["files", "neighbours"] = "files",
    changes: bool = False,
) -> Schedule:
    world = Schedule(
        seed,
        plan,
        mode,
        servers=servers,
        workers=workers,
        deaths=deaths,
        halves=halves,
        copies=copies,
        changes=changes,
    )
    for _ in range(600):
        if world.master.is_finished:
            break
        world.step()
    world.finish()
    return world
