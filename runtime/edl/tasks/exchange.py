"""What a worker and the master say to each other, as plain data; `edl.rpc.codec` carries it over the wire."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec

from edl.tasks.failed import Failed
from edl.tasks.task import Report, Task, TaskType

UpdateKind = Literal["done", "given back", "failed", "checkpoint", "checkpoint written"]


class Flag(enum.IntFlag):
    """What every answer carries besides tasks."""

    NONE = 0
    PENDING = 1  # tasks wait that go between two training tasks
    STOPPED = 2  # training is to end
    TRAIN_OVER = 4
    PREDICT_OVER = 8
    FINISHED = 16  # the job is over: leave
    REJOIN = 32  # this incarnation was given up: what it holds is void
    DRY = 64  # no training task is to hand out now
    TAKE_OVER = 128  # this worker is to give back what it has, and to go on as a parameter server
    REGROUP = 256  # this ring is to end at the next minibatch: others wait to join it
    MEASURING = 512  # a round is not concluded yet, though all its tasks may be handed out


class TaskUpdate(msgspec.Struct, frozen=True):
    """One thing that a worker tells, numbered without gaps from 1.

    done: the task is. given back: `report.rows` of it are done for good. failed: doing it raised `error`; fatal: doing
    it again gives the same, or it is about no task at all. cut: weights, slots and step of this moment go to `folder`:
    all that was told before is in them, and the part of the open task that the report names. cut written: they are
    there.
    """

    sequence: int
    kind: UpdateKind
    report: Report
    error: Failed | None = None
    fatal: bool = False
    folder: str = ""


class Held(msgspec.Struct, frozen=True):
    """A task in a worker's hands, and how far it is; sums as in `edl.tasks.task.Summary`."""

    task: Task
    rows: int = 0
    steps: int = 0
    loss: float = 0.0
    weight: float = 0.0


class WorkerGroup(msgspec.Struct, frozen=True):
    """Those who take the same steps together. number: grows with every ring of the job.

    members: names; those who hold what was trained come first, the one that has held it for longest before all others.
    holders: how many they are; 0: nothing was trained since the cut, or the start. address: host:port where the first
    member's store listens.
    """

    number: int
    members: tuple[str, ...]
    holders: int
    address: str


class JoinRequest(msgspec.Struct, frozen=True):
    """A worker has left its ring, if it had one, and waits for the next. after: the number of the last that it was told
    of. address: host:port where its own store listens. without: members that are to be left out for a while, because
    they are far slower than the others."""

    address: str
    after: int = 0
    without: tuple[str, ...] = ()


class Request(msgspec.Struct, frozen=True):
    """want: how many tasks of which type. seen_upto: the reports that the last answer said are counted. servers: the
    number of the servers' list that is known. number: grows with every request of this start of the instance. ring: the
    number of the ring whose weights it has, 0: of none; what it tells of training tasks is of that ring. seek: it waits
    for a ring."""

    instance: str
    incarnation: int
    generation: int = 0
    told: tuple[TaskUpdate, ...] = ()
    held: tuple[Held, ...] = ()
    want: dict[TaskType, int] = {}
    seen_upto: int = 0
    servers: int = 0
    number: int = 0
    ring: int = 0
    seek: JoinRequest | None = None


class Servers(msgspec.Struct, frozen=True):
    """Where the parameter servers are. number: grows with every change. addresses: host:port by index.

    ready: all of them are arranged; else their calls are to wait for a later number.
    """

    number: int
    generation: int
    addresses: tuple[str, ...]
    ready: bool = False


class Answer(msgspec.Struct, frozen=True):
    """revoked: leases that are not valid any more. seen_upto: reports up to that number are counted; the next ones are
    wanted. durable_upto: those up to that number survive the master. servers: where they are now, if that is not what
    the request knew. ring: the one that the request seeks."""

    master_epoch: int
    tasks: tuple[Task, ...] = ()
    revoked: tuple[int, ...] = ()
    flags: Flag = Flag.NONE
    seen_upto: int = 0
    durable_upto: int = 0
    servers: Servers | None = None
    ring: WorkerGroup | None = None


class Joined(msgspec.Struct, frozen=True):
    """What an instance learns when it registers. resume: folder of the cut that a trainer goes on from, in the job
    folder; empty: from the start. servers: where they are, in a job that has them."""

    master_epoch: int
    generation: int
    lease_secs: float
    heartbeat_secs: float
    resume: str = ""
    finished: bool = False
    servers: Servers | None = None
