"""Many at once, or one alone."""

from __future__ import annotations

import threading
from collections.abc import Callable

from edl.ps.locks import RWLock

SECONDS = 30.0


def started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_many_go_through_together() -> None:
    lock, inside = RWLock(), threading.Barrier(3)

    def enter() -> None:
        with lock.share():
            inside.wait(SECONDS)

    threads = [started(enter) for _ in range(3)]
    for thread in threads:
        thread.join(SECONDS)
    assert not inside.broken


def test_who_is_alone_waits_for_those_inside_and_keeps_others_out() -> None:
    lock, order = RWLock(), list[str]()
    waiting, inside = threading.Event(), threading.Event()

    def exclusive() -> None:
        waiting.set()
        with lock.exclusive():
            order.append("alone")
            inside.set()
            late.start()
            assert not entered.wait(0.01)
            order.append("alone still")

    def enter() -> None:
        with lock.share():
            order.append("late")
            entered.set()

    entered = threading.Event()
    late = threading.Thread(target=enter, daemon=True)
    with lock.share():
        thread = started(exclusive)
        assert waiting.wait(SECONDS)
        assert not inside.wait(0.01)
        order.append("early")
    thread.join(SECONDS)
    assert entered.wait(SECONDS)
    assert order == ["early", "alone", "alone still", "late"]


def test_several_are_alone_one_after_another() -> None:
    lock, inside, most = RWLock(), [0], [0]

    def exclusive() -> None:
        for _ in range(200):
            with lock.exclusive():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [started(exclusive) for _ in range(4)]
    for thread in threads:
        thread.join(SECONDS)
    assert most == [1]
    with lock.share():  # nothing is left behind
        pass


def test_an_error_inside_opens_the_gate() -> None:
    lock = RWLock()
    for enter in (lock.share, lock.exclusive):
        try:
            with enter():
                raise KeyError
        except KeyError:
            pass
    with lock.exclusive():
        pass
