"""Thousands of random schedules of workers that die, calls that get lost, and masters that are restarted.

Master and workers are the real state machines, with a clock and a network that the test holds in its hands.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

from edl.jobs.outcome import Outcome
from edl.master.state import MasterState
from edl.master.tasks.recovery import RecoveryPolicy, TrainerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Flag, Joined
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from edl.tasks.task import CONTROL, Conclusion, Report, Task, TaskType
from edl.worker.outbox import Outbox
from tests.edl.master.blocks import blocks, drawn
from tests.edl.master.listed_checkpoints import ListedCheckpoints

LEASE = 10.0
WANT: dict[TaskType, int] = {"evaluate": 1, "conclude": 1, "export": 1, "train": 6, "predict": 6}


class Worker:
    """Does what a worker does, a step at a time."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.outbox = Outbox(name, incarnation)
        self.task: Task | None = None
        self.pending_checkpoints: list[str] = []
        self.steps: list[tuple[int, int, int, int]] = []  # of a trainer: what its weights have taken

    def do(self, *, away: bool = False) -> Task | None:
        """Finish the task in hands, and begin another, away from a master; the finished one."""
        done = self.task
        if done is not None:
            self.steps.append(
                (done.number, done.id, done.skip, done.rows) if done.type == "train" else (0, 0, 0, 0)
            )
            self.outbox.report("done", finished(done))
        self.task = self.outbox.take(*CONTROL, "train", "predict", away=away)
        return done


def finished(task: Task) -> Report:
    conclusion = None
    if task.type == "conclude":
        conclusion = Conclusion({"loss": 1.0})
    elif task.type == "export":
        conclusion = Conclusion(outcome=Outcome("train", 0, 0.0))
    return Report(
        task, task.rows, -(-task.rows // 512), 2.0 * task.rows, float(task.rows), conclusion=conclusion
    )


class World:
    """One job under one random schedule."""

    def __init__(
        self,
        seed: int,
        plan: Plan,
        workers: int,
        *,
        recovery: type[RecoveryPolicy] = RecoveryPolicy,
        loses_disks: bool = False,
    ) -> None:
        self.loses_disks = loses_disks
        self.random = random.Random(seed)  # noqa: S311 (a schedule, no secret)
        self.plan = plan
        self.recovery = recovery
        self.now = 0.0
        self.disk: set[str] = set()  # cuts that the master keeps
        self.master = self.leases(None)
        self.durable = b""
        self.write()
        self.workers = [Worker(f"worker-{n}", 0) for n in range(workers)]
        self.checkpoints: dict[str, list[tuple[int, int, int, int]]] = {"": []}

    def leases(self, kept: MasterState | None) -> TaskManager:
        checkpoints = ListedCheckpoints(self.disk.__contains__)
        return TaskManager(self.plan, kept, self.recovery, lease_secs=LEASE, checkpoints=checkpoints)

    def write(self) -> None:
        kept, marks = self.master.to_store()
        self.durable = encoding.encode(kept)
        self.master.on_written(marks)

    def call(self, worker: Worker, *, lose_request: bool = False, lose_answer: bool = False) -> None:
        outbox = worker.outbox
        if lose_request:
            return
        if outbox.rejoin:
            joined = self.master.join(outbox.instance, outbox.incarnation, self.now)
            self.write()  # a member is written down before it is answered
            if joined is None:
                self.replace(worker)
            elif not lose_answer:
                self.begin(worker, joined)
            return
        answer = self.master.exchange(outbox.request(WANT), self.now)
        if not lose_answer:
            outbox.on_answer(answer)
            if outbox.rejoin and self.recovery is TrainerRecovery:
                self.replace(worker)

    def begin(self, worker: Worker, joined: Joined) -> None:
        """A trainer goes on from its cut, if it can still have that."""
        if self.recovery is TrainerRecovery:
            if joined.resume and joined.resume not in self.disk:
                self.kill(worker)
                return
            worker.steps = list(self.checkpoints[joined.resume])
        worker.outbox.apply_registration(joined)

    def replace(self, worker: Worker) -> None:
        """The worker dies; its name is started again."""
        new = Worker(worker.outbox.instance, worker.outbox.incarnation + 1)
        self.workers[self.workers.index(worker)] = new

    def step(self) -> None:
        worker = self.random.choice(self.workers)
        actions: dict[Callable[[Worker], object], int] = {
            self.call: 45,
            Worker.do: 25,
            partial(Worker.do, away=True): 5,
            partial(self.call, lose_request=True): 5,
            partial(self.call, lose_answer=True): 5,
            lambda _: self.write(): 3,
            self.kill: 3,
            lambda _: self.restart(): 2,
            self.drain: 2,
            self.take_cut: 1,
            self.finish_cut: 1,
            lambda _: self.pass_time(): 4,
        }
        (action,) = self.random.choices(list(actions), list(actions.values()))
        action(worker)

    def kill(self, worker: Worker) -> None:
        self.replace(worker)
        if self.random.random() < 0.5:  # the cluster sees it; else the lease runs out
            self.master.on_loss(worker.outbox.instance, worker.outbox.incarnation, self.now)

    def pass_time(self) -> None:
        self.now += self.random.random() * LEASE / 2
        self.master.tick(self.now)

    def drain(self, worker: Worker) -> None:
        """The worker is drained: it gives back what it has, in part done, and leaves."""
        if worker.task is None:
            return
        worker.outbox.report("given back", Report(worker.task))
        worker.task = None
        worker.outbox.give_back_received()

    def restart(self) -> None:
        """The master dies, and is back with what it had written down, perhaps on an empty disk."""
        kept = encoding.decode(self.durable, MasterState)
        self.now = max(self.now, kept.seconds)
        if self.loses_disks and self.random.random() < 0.3:
            self.disk = set()
        self.master = self.leases(kept)
        self.write()

    def finish(self) -> None:
        """From now on nothing goes wrong."""
        for _ in range(20_000):
            if self.master.is_finished:
                return
            for worker in list(self.workers):
                self.call(worker)
                worker.do()
                if (
                    self.recovery is TrainerRecovery
                    and worker in self.workers
                    and self.random.random() < 0.1
                    and worker.task is None
                ):
                    self.take_cut(worker)
                    self.finish_cut(worker)
            self.now += 0.01
            self.master.tick(self.now)
        raise AssertionError("the job does not end")

    def take_cut(self, worker: Worker) -> None:
        """A trainer writes down its weights, in the middle of a task or between two."""
        if self.recovery is not TrainerRecovery or worker.outbox.rejoin:
            return
        folder = f"cut-{len(self.checkpoints)}"
        self.checkpoints[folder] = list(worker.steps)
        worker.outbox.report("checkpoint", Report(Task(0, "train")), folder=folder)
        worker.pending_checkpoints.append(folder)

    def finish_cut(self, worker: Worker) -> None:
        """What a trainer wrote in the background is complete."""
        if worker.pending_checkpoints:
            self.disk.add(worker.pending_checkpoints[-1])
            worker.outbox.report(
                "checkpoint written", Report(Task(0, "train")), folder=worker.pending_checkpoints.pop()
            )


def run(
    seed: int,
    plan: Plan,
    workers: int,
    *,
    recovery: type[RecoveryPolicy] = RecoveryPolicy,
    loses_disks: bool = False,
    steps: int = 300,
) -> World:
    world = World(seed, plan, workers, recovery=recovery, loses_disks=loses_disks)
    for _ in range(steps):
        if world.master.is_finished:
            break
        world.step()
    world.finish()
    return world


def check_prediction(seed: int) -> None:
    world = run(seed, Plan("predict", 17 * STREAMED_ROWS + 5), workers=3)
    assert world.master.job.is_finished
    assert world.master.state.done["predict"] >= 18
    assert not world.master.state.leases


def check_epochs(seed: int) -> None:
    rows = 9 * LEAST_ROWS + 77
    plan = Plan("train", rows, 3 * STREAMED_ROWS, Training(epochs=4, batch_size=512))
    state = run(seed, plan, workers=3).master.job.state
    assert state.rows == 4 * rows
    assert [(row.epoch, row.loss) for row in state.curve.rows] == [(epoch, 2.0) for epoch in range(1, 5)]
    assert state.outcome is not None


def check_trainer(seed: int, *, loses_disks: bool = False) -> None:
    rows = 9 * LEAST_ROWS + 77
    plan = Plan("train", rows, 100, Training(epochs=3, batch_size=512))
    world = run(seed, plan, workers=1, recovery=TrainerRecovery, loses_disks=loses_disks)
    assert world.master.job.state.rows == 3 * rows
    taken = [step[:3] for step in world.workers[0].steps if step[0]]
    assert taken == [(epoch, position, 0) for epoch in (1, 2, 3) for position in range(10)]


CHECKS: dict[str, Callable[[int], None]] = {
    "predict": check_prediction,
    "epochs": check_epochs,
    "trainer": check_trainer,
    "trainer-disks": partial(check_trainer, loses_disks=True),
}


@blocks(50, always=1)
def test_every_row_of_a_prediction_counts_once(block: int) -> None:
    drawn("predict", CHECKS["predict"], block)


@blocks(50, always=1)
def test_every_row_of_an_epoch_counts_once_and_the_epoch_is_measured(block: int) -> None:
    drawn("epochs", CHECKS["epochs"], block)


@pytest.mark.parametrize("kind", ["trainer", "trainer-disks"])
@blocks(50, always=1)
def test_a_trainer_that_dies_goes_back_to_its_checkpoint_and_its_weights_take_every_row_once(
    block: int, kind: str
) -> None:
    drawn(kind, CHECKS[kind], block)


def test_workers_learn_that_the_job_is_over() -> None:
    world = run(1, Plan("predict", 10), workers=2, steps=0)
    for worker in world.workers:
        world.call(worker)
        assert worker.outbox.flags & Flag.FINISHED
