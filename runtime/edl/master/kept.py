"""What a master writes down of its job: the content of the ledger.

Fields are only added, behind the others and with a default, so that the ledger of a job that runs stays readable.
"""

from __future__ import annotations

import msgspec

from edl.ps.messages import Manifest, Progress
from edl.tasks.exchange import WorkerGroup
from edl.tasks.failed import Failed
from edl.tasks.job import JobState
from edl.tasks.task import TaskType


class Lease(msgspec.Struct, array_like=True):
    """A task in a worker's hands. rows, steps, loss, weight: of it that are done, as the last heartbeat said.

    pushed: all of it was in the parameters at the last cut, though its worker has not reported it.
    """

    type: TaskType
    number: int
    id: int
    skip: int
    instance: str
    rows: int = 0
    steps: int = 0
    loss: float = 0.0
    pushed: Progress | None = None
    weight: float = 0.0


class Member(msgspec.Struct, array_like=True):
    """An instance that registered. seen: the second of its last word. upto: its reports that are counted. heard: the
    number of its last request."""

    incarnation: int
    seen: float
    upto: int = 0
    gone: bool = False
    heard: int = 0


class Failure(msgspec.Struct, array_like=True):
    """How often a task raised, and its last error."""

    times: int
    error: Failed


class Checkpoint(msgspec.Struct):
    """A point that training can go on from: its folder, and the course of the job then.

    manifest: of one that parameter servers hold in memory; `folder` is its name then. lives: of those who hold it, by
    index; one that took a lost one's place holds it as soon as it is arranged.
    """

    folder: str
    job: JobState
    manifest: Manifest | None = None
    epochs: list[int] = msgspec.field(default_factory=list, name="lives")


class ServerRecord(msgspec.Struct, array_like=True):
    """Who is the parameter server of an index: `ps-INDEX`, or a worker that stands in for it. address: host:port;
    empty: it is gone, or has not registered yet.

    life: counts those who had the place, from 0; -1: nobody had it.
    """

    instance: str = ""
    incarnation: int = -1
    address: str = ""
    epoch: int = -1


class Holder(msgspec.Struct, array_like=True):
    """A start of an instance that has what was trained. ring: the last that it said it is in; led: the last whose first
    member it was."""

    instance: str
    incarnation: int
    ring: int = 0
    led: int = 0


class Pause(msgspec.Struct, array_like=True):
    """Of an instance that is left out of rings. until: the second of its end. times: how often it was. ring: the last
    in which that was decided. why: in words."""

    until: float
    times: int
    ring: int
    why: str


class RendezvousState(msgspec.Struct):
    """number: of the last ring. present: who trains, or is about to; incarnations: of its members. holders: those who
    have held what was trained for longest come first. pauses: by instance. vain: rings in a row that all their members
    came back from, with nothing trained."""

    number: int = 0
    present: WorkerGroup | None = None
    incarnations: tuple[int, ...] = ()
    holders: list[Holder] = []
    pauses: dict[str, Pause] = {}
    vain: int = 0


class MasterState(msgspec.Struct):
    """What is written down. seconds: since the job began. revoking: leases of training tasks whose workers are gone;
    how far they are, the parameter servers are to say. servers: by index."""

    epoch: int = 0  # of the master
    counter: int = 0
    generation: int = 1
    seconds: float = 0.0
    job: JobState | None = None
    leases: dict[int, Lease] = {}
    members: dict[str, Member] = {}
    failures: dict[str, Failure] = {}
    done: dict[TaskType, int] = {}
    checkpoint: Checkpoint | None = msgspec.field(default=None, name="cut")
    pending_checkpoints: list[Checkpoint] = msgspec.field(default_factory=list, name="cutting")
    failed: Failed | None = None
    cancelled: str = ""
    metric_kinds: dict[str, str] = {}
    revoking: dict[int, Lease] = {}
    servers: list[ServerRecord] = []
    rendezvous: RendezvousState = msgspec.field(default_factory=RendezvousState, name="rings")
