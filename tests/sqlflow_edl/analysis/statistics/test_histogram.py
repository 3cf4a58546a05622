"""Histograms of numbers. Their range is not known before they are read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.models.fitting import Histogram
from sqlflow_edl.analysis.statistics.histogram import MOST_BINS, HistogramBuilder


def histogram(values: list[float], cut: int = 0) -> Histogram:
    builder = HistogramBuilder()
    for part in (values[:cut], values[cut:]):
        builder.add(np.array(part, dtype=np.float64))
    found = builder.end()
    assert found is not None
    return found


def test_bins_equal_numpy_with_the_same_edges() -> None:
    values = np.random.default_rng(0).normal(100, 15, 10_000)
    found = histogram(values.tolist(), 10)
    edges = found.start + found.width * np.arange(len(found.counts) + 1)
    np.testing.assert_array_equal(found.counts, np.histogram(values, edges)[0])
    assert MOST_BINS / 2 < len(found.counts) <= MOST_BINS
    assert np.log2(found.width) % 1 == 0


def test_a_column_of_one_value_has_one_bin() -> None:
    assert histogram([0.0, 0.0]).counts == (2,)
    found = histogram([1e18, 1e18])
    assert found.counts == (2,)
    assert found.start <= 1e18 < found.start + found.width


def test_bins_of_whole_numbers_are_not_narrower_than_one() -> None:
    builder = HistogramBuilder()
    builder.add(np.array([1.0, 12.0, 12.0]))
    assert builder.end(whole=True) == Histogram(1.0, 1.0, (1, *[0] * 10, 2))


def test_a_column_without_values_has_no_histogram() -> None:
    assert HistogramBuilder().end() is None


def test_numbers_that_differ_in_their_last_digits_share_a_bin() -> None:
    assert histogram([1e300, 1e300 * (1 + 1e-15)]).counts == (2,)


def test_a_number_just_below_zero_stays_below_it_beside_a_large_one() -> None:
    found = [histogram(values, 1) for values in ([7e27, -6e-298], [-6e-298, 7e27])]
    assert found[0] == found[1]
    assert (found[0].start < 0, found[0].counts[0]) == (True, 1)


@pytest.mark.parametrize("values", [[-1.7e308, 1.7e308], [5e-324, 0.0]])
def test_numbers_at_the_ends_of_the_range_have_no_histogram(values: list[float]) -> None:
    builder = HistogramBuilder()
    builder.add(np.array(values))
    assert builder.end() is None


@pytest.mark.soak
@given(st.lists(st.floats(-1e30, 1e30, allow_subnormal=False), min_size=1), st.data())
def test_batches_and_order_change_nothing(values: list[float], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(values)))
    whole = histogram(values)
    assert histogram(values, cut) == histogram(values[::-1], cut) == whole
    assert sum(whole.counts) == len(values)
    assert len(whole.counts) <= MOST_BINS
