"""Sparklines."""

from __future__ import annotations

import math

import pytest

from sqlflow_edl.reports.curve import sparkline


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([8, 7, 6, 5, 4, 3, 2, 1], "█▇▆▅▄▃▂▁"),
        ([1.0, 1.0], "▁▁"),
        ([1.0, None, math.nan, math.inf, 2.0], "▁█"),
        ([1.0], ""),
        ([], ""),
    ],
)
def test_a_block_stands_for_each_value(values: list[float | None], wanted: str) -> None:
    assert sparkline(values) == wanted


def test_a_long_curve_is_sampled_from_its_first_value_to_its_last() -> None:
    line = sparkline([1 - place / 999 for place in range(1000)], width=20)
    assert (len(line), line[0], line[-1]) == (20, "█", "▁")
    assert line == "".join(sorted(line, reverse=True))
