"""What master and supervisor, and supervisor and zygote, say to each other.

Between master and supervisor: JSON lines over a pair of connected sockets. Each request has a number and gets an
`Answer` with it; a `Changed` comes whenever an instance changes, a `Resized` when the job may have more or fewer of
them. The supervisor greets first.

Between supervisor and zygote: one JSON object a packet, over a pair of sockets that keep packets apart, so that the
zygote and every process that it forks may write to the same one.

Between client and supervisor: `DETACH` at the most; the end of the pipe says that the client is gone.
"""

from __future__ import annotations

import msgspec

from edl.cluster import Change, Instance, Room


class Start(msgspec.Struct, frozen=True, tag="start"):
    number: int
    instance: Instance


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    number: int
    name: str
    incarnation: int
    grace: float


class List(msgspec.Struct, frozen=True, tag="list"):
    number: int


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """relaunches: masters of this supervisor that ran before this one."""

    relaunches: int
    room: Room | None = None


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """refused: why the supervisor did not do it; empty when it did. no_room: for lack of that. changes: to `List`."""

    number: int
    refused: str = ""
    no_room: bool = False
    changes: tuple[Change, ...] = ()


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    change: Change


class Resized(msgspec.Struct, frozen=True, tag="resized"):
    room: Room


DETACH = b"detach\n"  # a client to its supervisor: the job goes on without it

Request = Start | Stop | List
Reply = Hello | Answer | Changed | Resized


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The zygote has imported what workers need. seconds: what that took."""

    seconds: float


class Forked(msgspec.Struct, frozen=True, tag="forked"):
    """Told by the new process itself, before it does anything else."""

    key: tuple[str, int]
    pid: int


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The system would not fork."""

    key: tuple[str, int]
    why: str


Born = Ready | Forked | Refused

requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
born: msgspec.json.Decoder[Born] = msgspec.json.Decoder(Born)
instances: msgspec.json.Decoder[Instance] = msgspec.json.Decoder(Instance)


def to_line(message: Request | Reply) -> bytes:
    return msgspec.json.encode(message) + b"\n"
