"""Messages between a worker and the master, as plain data; `edl.rpc.codec` converts them to protobuf."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from edl.jobs.failure import Failed
from edl.tasks.task import Report, Task, TaskType

UpdateKind = Literal["done", "given back", "failed", "checkpoint", "checkpoint written"]


class Flag(enum.IntFlag):
    """Job state that every answer carries besides tasks."""

    NONE = 0
    PENDING = 1  # tasks wait that go between two training tasks
    STOPPED = 2  # training is to end
    TRAIN_OVER = 4
    PREDICT_OVER = 8
    FINISHED = 16  # the job is over: leave
    REJOIN = 32  # this incarnation was given up: what it holds is void
    DRY = 64  # no training task is to hand out now
    TAKE_OVER = 128  # this worker is to give back what it has, and to go on as a parameter server
    REGROUP = 256  # this group is to end at the next minibatch: others wait to join it
    HUNG = 1024  # this incarnation made no progress for too long: write its stacks to the log and exit
    MEASURING = 512  # a round is not concluded yet, though all its tasks may be handed out
    SOUGHT = 2048  # other workers may need the tasks that this one has not begun: keep a call open


class TaskUpdate(msgspec.Struct, frozen=True):
    """Report of one event of a worker, numbered without gaps from 1.

    `done`: the task is finished. `given back`: `report.rows` of it are durable. `failed`: it raised `error`; with
    `fatal` a repetition would fail too, or the error is about no task but, if `folder` names one, about a damaged
    checkpoint. `checkpoint`: weights, slots and step of this moment are written to `folder`; they include all earlier
    reports, and the part of the open task in `report`. `checkpoint written`: they are complete.
    """

    sequence: int
    kind: UpdateKind
    report: Report
    error: Failed | None = None
    fatal: bool = False
    folder: str = ""


class TaskRun(msgspec.Struct, frozen=True):
    """Assigned tasks that are not begun: `count` of them, with consecutive ids from `id` and leases from `attempt`.

    One with rows that are done already (`skip`) is a run of its own.
    """

    type: TaskType
    number: int
    id: int
    attempt: int
    count: int = 1
    skip: int = 0

    @property
    def following(self) -> TaskRun:
        """The task that would continue the run."""
        return TaskRun(
            self.type, self.number, self.id + self.count, self.attempt + self.count, skip=self.skip
        )

    @property
    def tasks(self) -> Iterator[Task]:
        """The tasks, with the fields that identify them."""
        for offset in range(self.count):
            attempt = self.attempt + offset
            yield Task(self.id + offset, self.type, number=self.number, skip=self.skip, attempt=attempt)


def list_runs(tasks: Iterable[Task]) -> list[TaskRun]:
    """Return the tasks as runs, in their order."""
    runs: list[TaskRun] = []
    for task in tasks:
        run = TaskRun(task.type, task.number, task.id, task.attempt, skip=task.skip)
        if runs and not task.skip and run == runs[-1].following:
            runs[-1] = msgspec.structs.replace(runs[-1], count=runs[-1].count + 1)
        else:
            runs.append(run)
    return runs


class WorkerGroup(msgspec.Struct, frozen=True):
    """Workers that take the same steps together. `number` grows with every group of the job.

    `members` are names; the holders of the trained state come first, the longest holder before all others. `holders` is
    their number; 0 if nothing was trained since the checkpoint, or the start. `address` is host:port of the first
    member's store, `addresses` the same of all members, none in a very large group.
    """

    number: int
    members: tuple[str, ...]
    holders: int
    address: str
    addresses: tuple[str, ...] = ()


class JoinRequest(msgspec.Struct, frozen=True):
    """Request of a worker without a group to join the next one.

    `after` is the number of its last group, `address` host:port of its own store. `without` are members to exclude for
    a while because they are far slower than the others.
    """

    address: str
    after: int = 0
    without: tuple[str, ...] = ()


class Request(msgspec.Struct, frozen=True):
    """Heartbeat of a worker, with its reports and wishes.

    `held` are the begun tasks with their progress, `waiting` the assigned ones that are not begun. `want` is the number
    of further tasks by type; of the types in `idle` this worker has none that it may begin, and waits for one.
    `seen_upto` is the last report that the last answer acknowledged, `servers` the number of the known list of servers.
    `number` grows with every request of this incarnation. `group` is the number of the group that it has the weights of
    (0: none); its training reports belong to that group. `join` requests the next. `obstacle` describes what the worker
    does not reach, empty if nothing. `open_epoch` is the one of the last answer.
    """

    instance: str
    incarnation: int
    generation: int = 0
    updates: tuple[TaskUpdate, ...] = ()
    held: tuple[Report, ...] = ()
    want: dict[TaskType, int] = {}
    seen_upto: int = 0
    servers: int = 0
    number: int = 0
    group: int = 0
    join: JoinRequest | None = None
    obstacle: str = ""
    waiting: tuple[TaskRun, ...] = ()
    idle: tuple[TaskType, ...] = ()
    open_epoch: int = 0


class Servers(msgspec.Struct, frozen=True):
    """Addresses of the parameter servers. `number` grows with every change. `addresses` are host:port by index.

    `ready`: all of them are arranged; otherwise calls must wait for a later number.
    """

    number: int
    generation: int
    addresses: tuple[str, ...]
    ready: bool = False


class Answer(msgspec.Struct, frozen=True):
    """Answer of the master. `revoked` are leases that are void.

    Reports up to `seen_upto` are accepted, and the next ones expected; those up to `durable_upto` survive the master.
    `servers` are the present addresses if the request had older ones. `group` is the requested group. `asked` are
    leases of tasks that other workers need, to be returned unless the task was begun. Training tasks of epochs after
    `open_epoch` are begun only while no master answers; 0: all may be begun. `certain_epoch` is the last epoch that is
    trained whatever the next conclusions decide.
    """

    master_epoch: int
    tasks: tuple[Task, ...] = ()
    revoked: tuple[int, ...] = ()
    flags: Flag = Flag.NONE
    seen_upto: int = 0
    durable_upto: int = 0
    servers: Servers | None = None
    group: WorkerGroup | None = None
    asked: tuple[int, ...] = ()
    open_epoch: int = 0
    certain_epoch: int = 0


class Joined(msgspec.Struct, frozen=True):
    """Result of a registration. `resume` is the folder of the checkpoint that a trainer resumes from, within the job
    folder, or empty. `servers` are the addresses in a job with parameter servers.
    """

    master_epoch: int
    generation: int
    lease_secs: float
    heartbeat_secs: float
    resume: str = ""
    finished: bool = False
    servers: Servers | None = None
