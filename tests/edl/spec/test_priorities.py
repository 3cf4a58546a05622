"""Priorities by name and by number."""

from __future__ import annotations

import pytest

from edl.spec.priorities import HIGHEST, LOWEST, name, priority


@pytest.mark.parametrize(
    ("written", "number"),
    [("low", -100), ("Normal", 0), (" HIGH ", 100), ("7", 7), (-7, -7), (HIGHEST, HIGHEST), (LOWEST, LOWEST)],
)
def test_a_priority_is_a_name_or_a_number(written: str | int, number: int) -> None:
    assert priority(written) == number


@pytest.mark.parametrize("written", ["", "urgent", "1.5", HIGHEST + 1, LOWEST - 1])
def test_anything_else_is_none(written: str | int) -> None:
    assert priority(written) is None


def test_a_number_with_a_name_is_shown_by_it() -> None:
    assert [name(number) for number in (-100, 0, 100, 7)] == ["low", "normal", "high", "7"]
