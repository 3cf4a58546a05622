"""What a client and its training process say to each other: one JSON object a line.

Requests come on the process's standard input; it ends when that closes. Events go to a file descriptor of their own,
so nothing that a program prints can be taken for one. A job is named by a number, and a cancel names the job, so one
that comes too late harms no later job.
"""

from __future__ import annotations

import msgspec

from edl.errors import SpecError
from edl.jobs.events import EpochEnd, Progress
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome

LOG = "logs/worker-0.log"  # in the job folder


class Run(msgspec.Struct, frozen=True, tag="run"):
    """Run the program's job on the rows that are pinned in the job folder.

    weights: a model's archive, or its weights.safetensors: what a statement that uses a model has, and TRAIN starts
    from.
    """

    number: int
    program: str
    job: str
    weights: str = ""


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    number: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The framework is imported. seconds: what that took."""

    seconds: float


Request = Run | Cancel
Event = Ready | Progress | EpochEnd | Outcome | Failed

_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def to_line(message: Request | Event) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def to_request(line: bytes) -> Request:
    """SpecError: the line is no request."""
    try:
        return _requests.decode(line)
    except msgspec.MsgspecError as error:
        raise SpecError(f"not a request: {error}") from None


def to_event(line: bytes) -> Event:
    """SpecError: the line is no event."""
    try:
        return _events.decode(line)
    except msgspec.MsgspecError as error:
        raise SpecError(f"not an event of a training process: {error}") from None
