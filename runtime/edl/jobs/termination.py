"""SIGTERM to a command: it raises an exception like Ctrl-C, so that no partial output stays, but the job is kept.

Handlers stand in commands only: a process of the user's that runs jobs keeps its own.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from edl.jobs.spot_notice import watching_for_spot_notice


class TerminatedError(KeyboardInterrupt):
    """SIGTERM reached this command. Handlers that continue after Ctrl-C, such as a prompt's, must not catch this.

    `cancels`: jobs are to be cancelled, not kept. `kept` gets the ids of interrupted jobs that can be resumed.
    """

    def __init__(self, message: str = "", *, cancels: bool = False) -> None:
        super().__init__(*filter(None, [message]))
        self.cancels = cancels
        self.kept: list[str] = []

    @property
    def report(self) -> str:
        """Last line for the user."""
        sentences = [str(self)] if str(self) else []
        sentences += [f"job {job} is kept for 7 days; `sqlflow cancel {job}` removes it" for job in self.kept]
        return "\n".join(f"terminated; {text}" for text in sentences) or "terminated"


@contextlib.contextmanager
def terminating_after(interrupted: threading.Event) -> Iterator[None]:
    """Make the first SIGTERM inside the context set the event, for work of this process that must end in order.

    A second one raises TerminatedError, and so does a JobInterruptedError in which the work ends. No handler stands
    outside of the main thread.
    """

    def terminate(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise TerminatedError
        interrupted.set()

    from edl.jobs.outcome import JobInterruptedError

    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, terminate) if in_main else None
    try:
        yield
    except JobInterruptedError:
        raise TerminatedError from None
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)


class DetachedError(TerminatedError):
    """SIGTERM reached this command while it followed a job elsewhere, which continues."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"job {job_id} continues: `sqlflow attach {job_id}` follows it, `sqlflow cancel {job_id}` cancels it"
        )


@contextlib.contextmanager
def terminating(*, cancels: bool = False) -> Iterator[None]:
    """Make SIGTERM, and the spot notice unless it `cancels`, raise TerminatedError inside the context.

    No effect outside of the main thread. Raises SemanticError if EDL_SPOT_NOTICE is nothing that can be asked.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        raise TerminatedError(cancels=cancels)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        with contextlib.nullcontext() if cancels else watching_for_spot_notice(_say):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
