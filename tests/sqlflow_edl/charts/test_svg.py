"""Scales and their ticks."""

from __future__ import annotations

import math

import pytest

from sqlflow_edl.charts.svg import Scale, element, label


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.13, 0.47, [0.2, 0.3, 0.4]),
        (-3.0, 12.0, [0, 5, 10]),
        (2.0, 2.0, [2]),
        (0.0, math.inf, [0]),
    ],
)
def test_ticks_are_round_and_inside(low: float, high: float, ticks: list[float]) -> None:
    assert Scale(low, high, 0, 100).ticks() == pytest.approx(ticks)


def test_ticks_of_whole_numbers_are_whole() -> None:
    assert Scale(1, 3, 0, 100).ticks(8, whole=True) == [1, 2, 3]


def test_a_scale_is_rounded_outwards() -> None:
    found = Scale(0.13, 0.47, 0, 100).round_to_ticks()
    assert (found.low, found.high) == pytest.approx((0.1, 0.5))


def test_numbers_are_short() -> None:
    assert [label(each) for each in (0.0, 0.30000000000000004, 12000.0, 1e9, 1e-7)] == [
        "0",
        "0.3",
        "12,000",
        "1e+09",
        "1e-07",
    ]


def test_attributes_are_escaped() -> None:
    assert (
        element("text", aria_label='"<a>"', class_="x")
        == '<text aria-label="&quot;&lt;a&gt;&quot;" class="x"/>'
    )
