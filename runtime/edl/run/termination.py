"""SIGTERM as cancellation of a command: it raises an exception like Ctrl-C, so that jobs end without partial output."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TerminatedError(KeyboardInterrupt):
    """SIGTERM reached this command. Handlers that continue after Ctrl-C, such as a prompt's, must not catch this."""


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
