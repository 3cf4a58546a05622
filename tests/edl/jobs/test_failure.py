"""How a failure goes from one process to another."""

from __future__ import annotations

from typing import Any

import pytest

from edl.errors import JobError, SemanticError, SourceError, SpecError
from edl.jobs.failure import to_error, to_failed
from edl.jobs.outcome import JobCancelledError
from edl.program import UserCodeError


@pytest.mark.parametrize(
    "error",
    [
        SemanticError("m", hint="h"),
        SourceError("m"),
        SpecError("m"),
        JobError("m", hint="h"),
        UserCodeError("m", hint="h", traceback="Traceback of your code:\n"),
        JobCancelledError(),
    ],
)
def test_an_error_arrives_as_what_it_was(error: Any) -> None:
    arrived = to_error(to_failed(error, "log"))
    assert type(arrived) is type(error)
    assert vars(arrived) == vars(error)


def test_an_error_of_ours_is_named_by_type_and_first_line_with_the_log() -> None:
    failed = to_failed(OSError(28, "No space left on device"), "/job/logs/worker-0.log")
    assert failed.message == "OSError: [Errno 28] No space left on device"
    assert failed.hint == "the traceback is in /job/logs/worker-0.log"
    assert to_failed(MemoryError(), "log").message == "MemoryError"
