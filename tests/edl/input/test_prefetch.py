"""Reading ahead in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from edl.input.prefetch import Prefetch


def threads() -> int:
    return sum(thread.name == "edl-prefetch" for thread in threading.enumerate())


def test_all_items_come_in_order() -> None:
    with Prefetch(iter(range(1000)), 3) as items:
        assert list(items) == list(range(1000))
        assert list(items) == []


def test_no_more_than_depth_items_are_read_ahead() -> None:
    read = []
    third = threading.Event()

    def source() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            if number == 2:
                third.set()
            yield number

    with Prefetch(source(), 2) as items:
        assert third.wait(10)  # two are ready, and the third waits for room
        assert read == [0, 1, 2]
        assert next(items) == 0


def test_an_error_comes_where_its_item_would_have_come_and_once() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    with Prefetch(source()) as items:
        assert next(items) == 1
        with pytest.raises(ValueError, match="broken"):
            next(items)
        with pytest.raises(StopIteration):
            next(items)


def test_closing_stops_a_thread_that_waits_for_room() -> None:
    before = threads()
    endless = Prefetch(iter(int, 1), 1)
    assert next(endless) == 0
    endless.close()
    assert threads() == before
    assert list(endless) == []


def test_leaving_with_an_error_stops_the_thread() -> None:
    before = threads()
    with pytest.raises(KeyError), Prefetch(iter(int, 1)):
        raise KeyError
    assert threads() == before
