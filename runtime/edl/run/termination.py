"""SIGTERM to a command as a cancel: it raises what Ctrl-C raises, so that jobs end and nothing is half-written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TerminatedError(KeyboardInterrupt):
    """SIGTERM reached this command. What catches Ctrl-C to go on, such as a prompt, must not catch this."""


@contextmanager
def terminating() -> Iterator[None]:
    """While this lasts, SIGTERM raises TerminatedError in the main thread. Outside of the main thread, no effect."""
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
