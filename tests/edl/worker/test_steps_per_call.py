"""How many minibatches go into one call."""

from __future__ import annotations

from edl.worker.loop import StepsPerCall


class Clock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def pieces(
    calls: StepsPerCall, clock: Clock, seconds_per_step: float, rows: int, size: int
) -> list[tuple[int, int]]:
    found = []
    for first, last in calls.pieces(0, rows, size):
        clock.now += seconds_per_step * -(-(last - first) // size)
        found.append((first, last))
    return found


def test_pieces_cover_the_rows_at_borders_of_minibatches() -> None:
    clock = Clock()
    found = pieces(StepsPerCall(clock), clock, 0.001, 1005, 10)
    assert [first for first, _ in found] == [0, *(last for _, last in found[:-1])]
    assert found[-1][1] == 1005
    assert all(first % 10 == 0 for first, _ in found)


def test_fast_steps_end_up_in_one_call() -> None:
    clock = Clock()
    calls = StepsPerCall(clock)
    pieces(calls, clock, 0.001, 8192, 512)
    assert pieces(calls, clock, 0.001, 8192, 512) == [(0, 8192)]


def test_slow_steps_stay_alone() -> None:
    clock = Clock()
    assert pieces(StepsPerCall(clock), clock, 3.0, 40, 10) == [(0, 10), (10, 20), (20, 30), (30, 40)]


def test_calls_that_became_slow_shrink() -> None:
    clock = Clock()
    calls = StepsPerCall(clock)
    for _ in range(5):
        pieces(calls, clock, 0.001, 8192, 512)
    found = pieces(calls, clock, 1.0, 8192, 512)
    assert found[0] == (0, 8192)
    assert pieces(calls, clock, 1.0, 8192, 512)[-1] == (7680, 8192)


def test_one_row_is_a_piece() -> None:
    clock = Clock()
    assert pieces(StepsPerCall(clock), clock, 0.1, 1, 512) == [(0, 1)]
