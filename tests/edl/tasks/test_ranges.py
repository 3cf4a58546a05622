"""How rows are cut into tasks, and in which order an epoch takes them."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.spec import Explanation, Numeric, RegressionLabel, Rows, Training
from edl.tasks.ranges import (
    LEAST_ROWS,
    STREAMED_ROWS,
    epoch_ranges,
    epoch_steps,
    streamed_rows,
    task_rows,
)
from tests.edl.programs import job_spec


def taken(training: Training, rows: int, epoch: int) -> list[tuple[int, int]]:
    ranges = epoch_ranges(training, rows, epoch)
    return [ranges[position] for position in range(len(ranges))]


@given(
    rows=st.integers(1, 100_000),
    batch_size=st.integers(1, 50_000),
    epoch=st.integers(1, 3),
    shuffle=st.booleans(),
    seed=st.integers(-(2**70), 2**70),
)
def test_each_epoch_takes_every_row_once_in_whole_minibatches(
    rows: int, batch_size: int, epoch: int, shuffle: bool, seed: int
) -> None:
    training = Training(epochs=3, batch_size=batch_size, shuffle=shuffle, seed=seed)
    ranges = sorted(taken(training, rows, epoch))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == rows
    assert all(one[1] == next_[0] for one, next_ in itertools.pairwise(ranges))
    assert all((end - start) % batch_size == 0 and end - start >= LEAST_ROWS for start, end in ranges[:-1])


@given(st.integers(1, 60_000), st.integers(1, 20_000), st.integers(1, 4), st.integers(1, 50))
def test_a_limit_of_steps_is_met_exactly(rows: int, batch_size: int, epochs: int, limit: int) -> None:
    training = Training(epochs=epochs, batch_size=batch_size, max_steps=limit)
    whole = epoch_steps(training, rows)
    reached = [epoch for epoch in range(1, epochs + 1) if (epoch - 1) * whole < limit]
    steps = sum(
        -(-(end - start) // batch_size) for epoch in reached for start, end in taken(training, rows, epoch)
    )
    assert steps == min(limit, epochs * whole)


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return [start for start, _ in taken(Training(epochs=3, seed=seed), 40 * LEAST_ROWS, epoch)]

    assert order(1, 2) == order(1, 2)
    assert order(1, 1) != order(1, 2)
    assert order(1, 1) != order(2, 1)


def test_without_shuffling_the_order_follows_the_rows() -> None:
    training = Training(epochs=2, batch_size=512, shuffle=False)
    assert [start for start, _ in taken(training, 3 * LEAST_ROWS, 2)] == [0, 8192, 16384]


@pytest.mark.parametrize(
    ("batch_size", "rows"), [(1, 8192), (512, 8192), (1000, 9000), (8193, 8193), (100_000, 100_000)]
)
def test_a_task_holds_whole_minibatches(batch_size: int, rows: int) -> None:
    assert task_rows(batch_size) == rows


@pytest.mark.parametrize(
    ("samples", "columns", "rows", "expected"),
    [
        (32, 9, 100, 1024),  # a block
        (32, 9, 1024 * 4096, 1024),
        (32, 9, 1024 * 4096 + 1, 2048),
        (10_000, 9, 100, 3),
        (32, 1, 100, 8192),
        (32, 9, 10**9, STREAMED_ROWS),
    ],
)
def test_tasks_are_small_where_each_row_takes_many_predictions(
    samples: int, columns: int, rows: int, expected: int
) -> None:
    features = tuple(Numeric(f"x{number}") for number in range(columns))
    trained = job_spec("torch", features, RegressionLabel("y", 0.0, 1.0), Rows(True, rows, rows))
    spec = msgspec.structs.replace(trained, kind="explain", explanation=Explanation("rows", samples))
    assert streamed_rows(spec, rows) == expected
    assert streamed_rows(trained, rows) == STREAMED_ROWS


def test_a_task_holds_as_many_minibatches_as_the_job_says() -> None:
    found = epoch_ranges(Training(batch_size=10, minibatches_per_task=3, shuffle=False), 100, 1)
    assert [found[number] for number in range(len(found))] == [(0, 30), (30, 60), (60, 90), (90, 100)]
