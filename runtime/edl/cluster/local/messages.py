"""Messages between master and supervisor, supervisor and forkserver, client and supervisor.

Between master and supervisor: JSON lines over a pair of connected sockets. Each request has a number and gets an
`Answer` with it; a `Changed` is sent when an instance changes, a `Resized` when the limit of instances does, an
`Ordered` when the job is to end. The supervisor greets first. A `Heartbeat` of the master's event loop has no answer.

Between supervisor and forkserver: one JSON object per packet, over a pair of sockets that preserve packets, so that
the forkserver and every process that it forks may write to the same one. A `Warm` comes first.

Between client and supervisor: at most `DETACH`; the end of the pipe means that the client is gone. Before that, a
standby (`edl.cluster.local.standby`) gets a `Warm` and the folder of its job, and its master a `Begin`.
"""

from __future__ import annotations

import msgspec

from edl.cluster import Change, Instance, Order, Room
from edl.jobs.cluster_folder import RunSpec


class Start(msgspec.Struct, frozen=True, tag="start"):
    number: int
    instance: Instance


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    number: int
    instance: Instance
    grace: float


class Want(msgspec.Struct, frozen=True, tag="want"):
    """Number of instances that the job keeps, and that it can use from now on, for its quota."""

    number: int
    least: int
    most: int


class List(msgspec.Struct, frozen=True, tag="list"):
    number: int


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat"):
    """Sign that the master's event loop runs."""


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """Greeting. `relaunches` counts the masters of this supervisor before this one; `order` is their last order."""

    relaunches: int
    room: Room | None = None
    order: Order | None = None


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """Answer to a request. `refused` is the reason for a refusal, empty on success; `no_room` is True if room was
    lacking; `changes` answers `List`.
    """

    number: int
    refused: str = ""
    no_room: bool = False
    changes: tuple[Change, ...] = ()


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    change: Change


class Resized(msgspec.Struct, frozen=True, tag="resized"):
    room: Room


class Ordered(msgspec.Struct, frozen=True, tag="ordered"):
    order: Order


DETACH = b"detach\n"  # from a client to its supervisor: the job continues without it

Request = Start | Stop | Want | List | Heartbeat
Reply = Hello | Answer | Changed | Resized | Ordered


class Warm(msgspec.Struct, frozen=True, tag="warm"):
    """Request to import what the workers of a job like this need. collectives: they sum gradients by Gloo."""

    spec: RunSpec
    collectives: bool


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Request for a worker of the job in the folder."""

    job: str
    instance: Instance


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """Arguments of a master that waited for its job."""

    arguments: tuple[str, ...]


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Notice that the forkserver has imported what workers need, in `seconds`."""

    seconds: float


class Forked(msgspec.Struct, frozen=True, tag="forked"):
    """Notice of a new process itself, before it does anything else."""

    key: tuple[str, int]
    pid: int


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Notice that the system refused to fork."""

    key: tuple[str, int]
    why: str


FromForkserver = Ready | Forked | Refused

request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
reply_decoder: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
to_forkserver_decoder: msgspec.json.Decoder[Warm | Fork] = msgspec.json.Decoder(Warm | Fork)
forkserver_decoder: msgspec.json.Decoder[FromForkserver] = msgspec.json.Decoder(FromForkserver)
instance_decoder: msgspec.json.Decoder[Instance] = msgspec.json.Decoder(Instance)


def to_line(message: Request | Reply) -> bytes:
    return msgspec.json.encode(message) + b"\n"
