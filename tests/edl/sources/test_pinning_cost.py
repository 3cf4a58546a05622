"""What is told before rows are copied: their number, size, seconds and memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

from edl.data.source import PinningRates, RowEstimate
from edl.sources.pinning_cost import IN_FILE, ROWS_IN_MEMORY, RowMeter, pinning_cost, row_size

IN_SERVER = PinningRates(copy=2e-8, order=3e-8, in_server=True)


def test_rows_that_are_read_for_another_purpose_are_counted() -> None:
    meter = RowMeter()
    batches = [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3]})]
    assert list(meter.watch(batches)) == batches
    counted = meter.estimate()
    assert (counted.rows, counted.size, counted.is_counted) == (3, 24, True)
    assert counted.seconds is not None


def test_the_order_of_rows_costs_time_and_memory() -> None:
    rows = RowEstimate(1_000_000, 100e6, seconds=1.0)
    in_order, shuffled = (pinning_cost(rows, IN_FILE, shuffled=shuffled) for shuffled in (False, True))
    assert in_order == pytest.approx((1.5, 0))
    assert shuffled == pytest.approx((2.7, 160e6))


def test_many_rows_are_not_all_in_memory() -> None:
    rows = RowEstimate(100_000_000, 40e9, seconds=1.0)
    assert pinning_cost(rows, IN_FILE, shuffled=True).memory == ROWS_IN_MEMORY + 6e9


def test_rows_that_stay_in_their_server_take_only_the_memory_of_their_order() -> None:
    cost = pinning_cost(RowEstimate(1_000_000, 100e6), IN_SERVER, shuffled=True)
    assert cost == pytest.approx((5.0, 60e6))


@pytest.mark.parametrize(("rates", "seconds"), [(None, 1.0), (IN_FILE, None)])
def test_the_time_is_unknown_where_a_part_of_it_is(rates: PinningRates | None, seconds: float | None) -> None:
    assert pinning_cost(RowEstimate(10, 80, seconds), rates, shuffled=True).seconds is None


def test_the_size_of_a_row_is_that_of_its_values_in_arrow() -> None:
    assert row_size([1, 2.5, None, "text", b"by"]) == 3 * 8 + 8 + 6
