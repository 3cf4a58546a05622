"""SIGTERM as an exception like Ctrl-C, so that jobs end without partial output; those elsewhere continue."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TerminatedError(KeyboardInterrupt):
    """SIGTERM reached this command. Handlers that continue after Ctrl-C, such as a prompt's, must not catch this."""


class DetachedError(TerminatedError):
    """SIGTERM reached this command while it followed a job elsewhere, which continues."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"job {job_id} continues: `sqlflow attach {job_id}` follows it, `sqlflow cancel {job_id}` cancels it"
        )


@contextmanager
def terminating() -> Iterator[None]:
    """Make SIGTERM raise TerminatedError inside the context. No effect outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise(number: int, frame: FrameType | None) -> None:
    raise TerminatedError
