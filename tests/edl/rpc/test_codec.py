"""The exchange with the master, to the wire and back."""

from __future__ import annotations

import numpy as np
import pytest

from edl.errors import SpecError
from edl.jobs.events import EpochEnd
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome
from edl.rpc import codec
from edl.rpc import control_pb2 as pb
from edl.tasks import encoding
from edl.tasks.protocol import (
    Answer,
    Flag,
    Joined,
    JoinRequest,
    Request,
    Servers,
    TaskRun,
    TaskUpdate,
    WorkerGroup,
)
from edl.tasks.task import Conclusion, JobProgress, Report, Round, Summary, Task

STATES = {"auc": (np.array([0.0, 1.0]), np.ones((3, 4)))}
COURSE = JobProgress(
    10, 2, 0.5, (EpochEnd(1, 2, 0.1, {"loss": None}, 0.4),), {"loss": 0.1}, "validation", "enough"
)
ROUND = Round(
    3, 1, False, 7, Summary(10, 2, 1.0, 10.0), Summary(5, 0, 1.0, 5.0, [STATES]), "validation", COURSE
)
TASK = Task(4, "conclude", 0, 0, 3, 0, (7 << 40) + 5, settles=True, round=ROUND)
TRAIN = Task(1, "train", 8192, 16384, 2, 512, (7 << 40) + 6)
SERVERS = Servers((7 << 20) + 2, 3, ("127.0.0.1:1", "127.0.0.1:2"), ready=True)
GROUP = WorkerGroup(5, ("worker-1", "worker-0"), 1, "127.0.0.1:3", ("127.0.0.1:3", "127.0.0.1:4"))
SEEK = JoinRequest("127.0.0.1:4", 4, ("worker-2",))
CONCLUSION = Conclusion(
    {"rmse": 0.5, "auc": None}, "enough", Outcome("train", 10, 0.5, archive="archive.zip")
)


def over_the_wire(message: object, kind: type) -> object:
    return kind.FromString(message.SerializeToString())  # type: ignore[attr-defined]


def test_a_request_comes_as_it_went() -> None:
    told = (
        TaskUpdate(1, "done", Report(TRAIN, 7680, 15, 1.5, 7680.0, STATES)),
        TaskUpdate(2, "failed", Report(TRAIN), Failed("job", "no", "yes", "Traceback"), fatal=True),
        TaskUpdate(3, "given back", Report(TRAIN, 512, 1, 0.25, 512.0)),
        TaskUpdate(4, "checkpoint", Report(TRAIN, 512), folder="000012"),
        TaskUpdate(5, "checkpoint written", Report(TRAIN), folder="000012"),
        TaskUpdate(6, "done", Report(TRAIN, conclusion=CONCLUSION)),
    )
    request = Request(
        "worker-0",
        3,
        2,
        told,
        (Report(TRAIN, 512, 1, 0.25, 256.0),),
        {"train": 3, "export": 1},
        5,
        9,
        11,
        4,
        SEEK,
        "it is away",
        (TaskRun("train", 2, 5, 2**41, 30), TaskRun("train", 2, 40, 2**41 + 30, skip=512)),
        ("train", "predict"),
        3,
    )
    message = codec.request_to(request, 2.5, Flag.PENDING | Flag.STOPPED)
    found = over_the_wire(message, pb.ExchangeRequest)
    assert isinstance(found, pb.ExchangeRequest)
    assert (found.wait_secs, Flag(found.known)) == (2.5, Flag.PENDING | Flag.STOPPED)
    assert encoding.encode(codec.request_from(found)) == encoding.encode(request)


def test_an_answer_comes_as_it_went() -> None:
    answer = Answer(
        7, (TASK, TRAIN), (1, 2**45), Flag.PENDING | Flag.DRY, 8, 7, SERVERS, GROUP, (3, 2**45), 2, 9
    )
    found = over_the_wire(codec.answer_to(answer), pb.ExchangeResponse)
    assert isinstance(found, pb.ExchangeResponse)
    assert encoding.encode(codec.answer_from(found)) == encoding.encode(answer)


@pytest.mark.parametrize(
    "joined", [Joined(1, 2, 10.0, 3.0, "000012", True, SERVERS), Joined(1, 1, 10.0, 3.0), None]
)
def test_a_registration_comes_as_it_went(joined: Joined | None) -> None:
    found = over_the_wire(codec.joined_to(joined), pb.Registration)
    assert isinstance(found, pb.Registration)
    assert codec.joined_from(found) == joined


def test_damaged_bytes_are_named() -> None:
    message = codec.task_to(TASK)
    message.round = b"\xc1"
    with pytest.raises(SpecError, match="not a Round"):
        codec.task_from(message)
