"""What a time limit allows, by a clock that stands until it is moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from edl.errors import SemanticError
from sqlflow_edl.analysis.search.limits import (
    FEW_COLUMNS,
    LEAST_FITS,
    LEAST_PLANS,
    Clock,
    TimeLimit,
    default_seconds,
    estimate_row_cost,
)


@dataclass
class Hands:
    now: float = 500.0

    def __call__(self) -> float:
        return self.now


@dataclass
class SlowTable:
    """Table whose query takes a second, and each of its rows a millisecond."""

    hands: Hands
    read: list[int] = field(default_factory=list)

    def count_rows(self) -> int:
        return 1_000_000

    def read_rows(self, most: int, total: int | None, columns: Sequence[str] = ()) -> pa.Table:
        self.read.append(most)
        self.hands.now += 1.0 + most / 1000
        return pa.table({"x": range(most)})

    def condition(self, parts: int) -> str:
        return f"part of {parts}"


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def limit(hands: Hands) -> TimeLimit:
    return TimeLimit(100.0, Clock(hands))


def test_more_rows_have_more_time() -> None:
    found = [default_seconds(rows, 3) for rows in (1, 1_000, 1_001, 10_000, 100_000, 10**9)]
    assert found == [30, 30, 60, 60, 180, 300]


def test_the_time_of_a_statement_counts_from_its_beginning(hands: Hands, limit: TimeLimit) -> None:
    hands.now += 30
    assert limit.seconds_left == 70
    hands.now += 80
    assert limit.seconds_left == 0


def test_candidates_are_planned_and_fitted_while_there_is_time_and_a_few_in_any_case(
    hands: Hands, limit: TimeLimit
) -> None:
    assert limit.allows_plan(1000)
    assert limit.allows_fit(1000)
    hands.now += 20
    assert not limit.allows_plan(LEAST_PLANS)
    assert limit.allows_fit(1000)
    hands.now += 40
    assert limit.allows_plan(LEAST_PLANS - 1)
    assert not limit.allows_fit(LEAST_FITS)
    assert limit.allows_fit(LEAST_FITS - 1)


def test_a_slow_plan_leaves_time_for_fewer_columns_but_never_for_fewer_than_some(limit: TimeLimit) -> None:
    fast, slow, slower = (limit.columns_that_fit(5000, seconds) for seconds in (0.1, 1.0, 100.0))
    assert fast > 5000 > slow > slower == FEW_COLUMNS


def test_rows_are_halved_until_they_fit(limit: TimeLimit) -> None:
    fitting = 0.4 * 100 / 20 / 1e-6  # the share of the time, the multiple of a reading, its seconds
    assert limit.parts_of_rows(int(fitting), 1e-6) == 1
    assert limit.parts_of_rows(int(fitting) + 1, 1e-6) == 2
    assert limit.parts_of_rows(int(fitting * 5), 1e-6) == 8


def test_the_time_of_a_row_is_without_that_of_the_query(hands: Hands) -> None:
    table = SlowTable(hands)
    assert estimate_row_cost(table, 5, hands) == pytest.approx(0.001)
    assert table.read == [2_000, 20_000]
    table.read.clear()
    estimate_row_cost(table, 2_000, hands)
    assert table.read == [10, 100], "wide rows are few"


def test_a_limit_below_the_time_to_read_a_table_is_an_error_that_says_the_least_one(
    hands: Hands, limit: TimeLimit
) -> None:
    hands.now += 60
    limit.check_reading(2_000_000, 31.0, None)
    hands.now += 20
    limit.check_reading(2_000_000, 0.1, None)
    with pytest.raises(SemanticError, match="a time limit of 100 s is too short for this table") as caught:
        limit.check_reading(2_000_000, 31.0, None)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("about 116 s here: 111 s to read 2,000,000 rows")


def test_rows_whose_pinning_took_long_are_fewer_before_they_are_trained_on(
    hands: Hands, limit: TimeLimit
) -> None:
    hands.now += 10
    assert limit.parts_of_pinned(1_000_000, 10.0) == 1, "early"
    hands.now += 40
    assert limit.parts_of_pinned(1_000_000, 5.0) == 1, "all that follows takes 30 of 50 seconds"
    assert limit.parts_of_pinned(1_000_000, 40.0) == 8
    assert limit.parts_of_pinned(20_000, 40.0) == 2, "never fewer than 10,000"


def test_texts_count_several_times(limit: TimeLimit) -> None:
    assert limit.columns_that_fit(5000, 1.0) == 4 * limit.columns_that_fit(5000, 1.0, texts=1.0)
