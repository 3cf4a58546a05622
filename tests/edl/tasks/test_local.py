"""Partition, order and queues of a local job's tasks."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.spec import Training
from edl.tasks.task import LEAST_ROWS, LocalTasks, Report, Task, task_rows


def drained(tasks: LocalTasks, kind: Any = "train") -> list[Task]:
    return list(iter(lambda: tasks.next(kind), None))


@given(
    rows=st.integers(1, 100_000),
    batch_size=st.integers(1, 50_000),
    epochs=st.integers(1, 3),
    shuffle=st.booleans(),
    seed=st.integers(-(2**70), 2**70),
)
def test_each_epoch_takes_every_row_once_in_whole_minibatches(
    rows: int, batch_size: int, epochs: int, shuffle: bool, seed: int
) -> None:
    training = Training(epochs=epochs, batch_size=batch_size, shuffle=shuffle, seed=seed)
    found = drained(LocalTasks(rows, training))
    assert [task.id for task in found] == list(range(len(found)))
    for epoch in range(1, epochs + 1):
        ranges = sorted((task.start, task.end) for task in found if task.epoch == epoch)
        assert ranges[0][0] == 0
        assert ranges[-1][1] == rows
        assert all(one[1] == next_[0] for one, next_ in itertools.pairwise(ranges))
        assert all(
            (end - start) % batch_size == 0 and end - start >= LEAST_ROWS for start, end in ranges[:-1]
        )


@given(st.integers(1, 60_000), st.integers(1, 20_000), st.integers(1, 4), st.integers(1, 50))
def test_a_limit_of_steps_is_met_exactly(rows: int, batch_size: int, epochs: int, limit: int) -> None:
    training = Training(epochs=epochs, batch_size=batch_size, max_steps=limit)

    def steps(found: list[Task]) -> int:
        return sum(-(-task.rows // batch_size) for task in found)

    unlimited = steps(drained(LocalTasks(rows, Training(epochs=epochs, batch_size=batch_size))))
    assert steps(drained(LocalTasks(rows, training))) == min(limit, unlimited)


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        found = drained(LocalTasks(40 * LEAST_ROWS, Training(epochs=3, seed=seed)))
        return [task.start for task in found if task.epoch == epoch]

    assert order(1, 2) == order(1, 2)
    assert order(1, 1) != order(1, 2)
    assert order(1, 1) != order(2, 1)


def test_without_shuffling_the_order_is_that_of_the_rows() -> None:
    found = drained(LocalTasks(3 * LEAST_ROWS, Training(epochs=2, batch_size=512, shuffle=False)))
    assert [task.start for task in found] == [0, 8192, 16384] * 2


@pytest.mark.parametrize(
    ("batch_size", "rows"), [(1, 8192), (512, 8192), (1000, 9000), (8193, 8193), (100_000, 100_000)]
)
def test_a_task_holds_whole_minibatches(batch_size: int, rows: int) -> None:
    assert task_rows(batch_size) == rows


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, int, int]] = []

    def epoch_done(self, epoch: int, reports: list[Report]) -> None:
        self.heard.append(("epoch", epoch, sum(report.task.rows for report in reports)))

    def round_done(self, epoch: int, reports: list[Report]) -> None:
        self.heard.append(("round", epoch, sum(report.task.rows for report in reports)))


def test_an_epoch_is_done_when_its_last_task_is_reported() -> None:
    listener = Listener()
    tasks = LocalTasks(2 * LEAST_ROWS + 5, Training(epochs=2), listener)
    for number, task in enumerate(drained(tasks)):
        tasks.report(Report(task))
        assert len(listener.heard) == (number + 1) // 3
    assert listener.heard == [("epoch", 1, 16_389), ("epoch", 2, 16_389)]


def test_an_epoch_that_a_limit_cuts_short_is_done_too() -> None:
    listener = Listener()
    tasks = LocalTasks(LEAST_ROWS, Training(epochs=5, batch_size=512, max_steps=20), listener)
    for task in drained(tasks):
        tasks.report(Report(task))
    assert listener.heard == [("epoch", 1, 8192), ("epoch", 2, 4 * 512)]


def test_evaluation_has_a_queue_of_its_own() -> None:
    listener = Listener()
    tasks = LocalTasks(LEAST_ROWS, Training(), listener)
    assert not tasks.evaluation_pending
    assert tasks.queue("evaluate", 100, 200_100, epoch=1) == 4
    assert tasks.evaluation_pending
    first, *others = drained(tasks, "evaluate")
    assert not tasks.evaluation_pending
    assert (first.start, others[-1].end) == (100, 200_100)
    assert tasks.next("train") is not None
    for task in (first, *others):
        assert not listener.heard
        tasks.report(Report(task))
    assert listener.heard == [("round", 1, 200_000)]


def test_no_training_task_is_handed_out_after_a_stop() -> None:
    tasks = LocalTasks(10 * LEAST_ROWS, Training())
    assert tasks.next("train") is not None
    tasks.stop()
    assert tasks.next("train") is None
