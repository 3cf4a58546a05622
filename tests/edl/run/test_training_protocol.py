"""What a client and its training process say to each other."""

from __future__ import annotations

from typing import Any

import pytest

from edl.errors import SpecError
from edl.jobs.events import EpochEnd, Progress
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome
from edl.run.training_protocol import Cancel, Ready, Run, to_event, to_line, to_request

EPOCH = EpochEnd(1, 10, 0.5, {"auc": None, "loss": 0.25}, 1.5)


@pytest.mark.parametrize("request_", [Run(1, "/program", "/job 'ö\n", "w"), Cancel(7)])
def test_a_request_is_a_line(request_: Any) -> None:
    line = to_line(request_)
    assert line.index(b"\n") == len(line) - 1
    assert to_request(line) == request_


@pytest.mark.parametrize(
    "event",
    [
        Ready(1.5),
        Progress("training", 5, 10, 100.0, 1, 2, 3, None),
        EPOCH,
        Outcome(
            "train", 10, 1.0, figures={"auc": None}, measured_on="validation", curve=(EPOCH,), archive="a.zip"
        ),
        Failed("source", "no\nsuch table", None),
    ],
)
def test_an_event_is_a_line(event: Any) -> None:
    line = to_line(event)
    assert line.index(b"\n") == len(line) - 1
    assert to_event(line) == event


@pytest.mark.parametrize("line", [b"", b"null\n", b'{"type": "run"}\n', b"printed by a program\n"])
def test_another_line_is_refused(line: bytes) -> None:
    with pytest.raises(SpecError):
        to_request(line)
    with pytest.raises(SpecError):
        to_event(line)
