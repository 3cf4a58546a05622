"""SIGTERM to a command cancels what it does, like Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from edl.jobs.termination import TerminatedError, terminating


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
