"""Messages between a client and its training process: one JSON object per line.

Requests arrive on the process's standard input; it ends when that closes. Events are written to a separate file
descriptor, so that output of a program cannot be taken for one. Jobs are numbered, and a cancel names its job, so a
late cancel affects no later job. The end of the input interrupts the job: the client has died.
"""

from __future__ import annotations

import msgspec

from edl.errors import SpecError
from edl.jobs.events import ProcessEvent
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome
from edl.spec import Rows

LOG = "logs/worker-0.log"  # in the job folder


class TrialRun(msgspec.Struct, frozen=True):
    """Deviations of a trial of a search from its program.

    `time_limit` in seconds from `began`, a second as of `time.time`; 0 for the program's. `rows` are of a fold.
    With `epochs` the model is trained on all rows for so many epochs, and no rows validate. `left_out` training rows,
    the last ones, are not learned from. With `explained`, the trained model of the trial is explained for so many
    seconds, and nothing is trained.
    """

    time_limit: float = 0.0
    rows: Rows | None = None
    epochs: int = 0
    left_out: int = 0
    explained: float = 0.0
    began: float = 0.0


class Run(msgspec.Struct, frozen=True, tag="run"):
    """Request to run the program's job on the rows pinned in the job folder.

    `weights` is a model's archive or its weights.safetensors: the model that a statement uses, or from which TRAIN
    starts. `trial`: the job is a trial of a search.
    """

    number: int
    program: str
    job: str
    weights: str = ""
    trial: TrialRun | None = None


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Request to start a process for the trials of a search that follows, which imports the framework meanwhile."""

    framework: str


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    number: int


class Interrupt(msgspec.Struct, frozen=True, tag="interrupt"):
    """Request to end a training after a checkpoint, so that it can be resumed; any other job ends at once."""

    number: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Event: the framework is imported, which took `seconds`."""

    seconds: float


Request = Run | Prepare | Cancel | Interrupt
Event = Ready | ProcessEvent | Outcome | Failed

_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def to_line(message: Request | Event) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def to_request(line: bytes) -> Request:
    """Decode a request. Raises SpecError if the line is none."""
    try:
        return _requests.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"not a request: {error}") from None


def to_event(line: bytes) -> Event:
    """Decode an event. Raises SpecError if the line is none."""
    try:
        return _events.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"not an event of a training process: {error}") from None
