"""SIGTERM to a command cancels what it does, like Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from edl.jobs.outcome import JobInterruptedError
from edl.jobs.termination import TerminatedError, terminating, terminating_after


def test_sigterm_raises_what_ctrl_c_raises() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, terminating():
        os.kill(os.getpid(), signal.SIGTERM)
        signal.sigtimedwait([], 5)  # the handler runs before this returns
    assert isinstance(caught.value, TerminatedError)


def test_the_handler_before_is_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with terminating():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_of_the_main_thread_nothing_changes() -> None:
    seen = []

    def work() -> None:
        with terminating():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_work_that_ends_in_order_is_told_of_the_first_sigterm_and_ended_by_the_second() -> None:
    told = threading.Event()
    with pytest.raises(TerminatedError), terminating(), terminating_after(told):
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(5)
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(5)
        pytest.fail("the second one has no effect")


def test_interrupted_work_ends_the_command() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(TerminatedError), terminating_after(threading.Event()):
        raise JobInterruptedError
    assert signal.getsignal(signal.SIGTERM) is before
