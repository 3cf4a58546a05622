"""Ctrl-C reaches a database at once."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sqlflow_edl.session.interrupts import stop_on_interrupt


def test_a_signal_calls_stop_from_another_thread_and_raises_as_ever() -> None:
    stopped = threading.Event()
    threads: list[str] = []

    def stop() -> None:
        threads.append(threading.current_thread().name)
        stopped.set()

    with pytest.raises(KeyboardInterrupt), stop_on_interrupt(stop):
        os.kill(os.getpid(), signal.SIGINT)
        stopped.wait(30)
    assert stopped.is_set()
    assert threads == ["sqlflow-interrupts"]


def test_other_signals_stop_nothing() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    stopped: list[bool] = []
    try:
        with stop_on_interrupt(lambda: stopped.append(True)):
            os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (seen, stopped) == ([signal.SIGUSR1], [])


def test_nothing_is_left_of_it() -> None:
    with stop_on_interrupt(lambda: None):
        assert signal.set_wakeup_fd(-1) != -1
    assert signal.set_wakeup_fd(-1) == -1
    assert not [each for each in threading.enumerate() if each.name == "sqlflow-interrupts"]


def test_outside_the_main_thread_it_does_nothing() -> None:
    done = threading.Event()

    def work() -> None:
        with stop_on_interrupt(lambda: None):
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert done.is_set()
