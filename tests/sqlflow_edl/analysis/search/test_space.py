"""Search spaces: their points, and what is wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.errors import SQLFlowError
from sqlflow_edl.analysis.search.space import Dimension, dimensions, points
from sqlflow_edl.analysis.settings.values import Setting, to_python
from sqlflow_edl.syntax import parse


def space(attributes: str) -> tuple[list[Dimension], list[SQLFlowError]]:
    [statement] = parse(f"SELECT * FROM t TO TRAIN DNN WITH {attributes} LABEL y INTO m")
    errors: list[SQLFlowError] = []
    return dimensions(statement, errors), errors


def drawn(attributes: str, trials: int = 20, seed: int = 0) -> list[tuple[Setting, ...]]:
    found, errors = space(attributes)
    assert not errors
    return [tuple(map(to_python, point.values)) for point in points(found, trials, trials, seed)]


def test_attributes_with_one_value_are_no_dimension() -> None:
    found, _ = space("a = 1, b = CANDIDATES(1, 2), c = [1, 2], d = range(1, 9), e = CANDIDATES(x)")
    assert [each.varied.key for each in found] == ["b", "d", "e"]


def test_a_small_space_of_candidates_is_tried_as_a_whole() -> None:
    assert drawn("a = CANDIDATES(adam, 'x y'), b = CANDIDATES([64, 32], 8, 0.5)", 6) == [
        (a, b) for a in ("adam", "x y") for b in ((64, 32), 8, 0.5)
    ]
    assert len(drawn("a = CANDIDATES(1, 2, 3), b = CANDIDATES(1, 2)", 5)) == 5


def test_whole_numbers_are_drawn_evenly_with_both_ends() -> None:
    found = [value for (value,) in drawn("a = RANGE(1, 400)", 100)]
    assert [sum(low < value <= low + 100 for value in found) for low in (0, 100, 200, 300)] == [
        25,
        25,
        26,
        24,
    ]  # type: ignore[operator]
    assert sorted(value for (value,) in drawn("a = RANGE(1, 4)", 100)) == [1, 2, 3, 4]  # type: ignore[type-var]


def test_a_logarithmic_range_has_as_many_small_numbers_as_large_ones() -> None:
    rates = [value for (value,) in drawn("a = RANGE(0.0001, 1.0, LOG)", 200)]
    assert sum(value <= 0.01 for value in rates) == pytest.approx(100, abs=3)  # type: ignore[operator]
    found = [value for (value,) in drawn("a = RANGE(1, 10000, log)", 20)]
    assert sum(value <= 100 for value in found) == pytest.approx(10, abs=1)  # type: ignore[operator]
    assert all(isinstance(value, int) for value in found)


def test_points_are_different_and_have_a_coordinate_in_each_dimension() -> None:
    found, _ = space("a = RANGE(1, 2), b = CANDIDATES(x, y)")
    drawn_points = list(points(found, 3, 12, 0))
    assert len({point.values for point in drawn_points}) == len(drawn_points) == 4
    assert all(
        0 < number < 1 and name in ("0", "1") for number, name in (p.coordinates for p in drawn_points)
    )  # type: ignore[operator]


@pytest.mark.soak
@given(st.floats(1e-6, 1e6, allow_subnormal=False), st.floats(1e-6, 1e6), st.booleans(), st.integers(0, 1000))
def test_no_number_lies_outside_of_its_range(low: float, width: float, log: bool, seed: int) -> None:
    ends = f"{low!r}, {low + width!r}"
    if low == low + width:
        return
    for (value,) in drawn(f"a = RANGE({ends}{', log' if log else ''})", 5, seed):
        assert low <= value <= low + width  # type: ignore[operator]


def test_the_same_seed_draws_the_same_points_and_more_trials_begin_with_the_points_of_fewer() -> None:
    text = "a = RANGE(0.0, 1.0), b = RANGE(1, 1000), c = CANDIDATES(x, y, z)"
    assert drawn(text, 9) == drawn(text, 9)
    assert drawn(text, 9) == drawn(text, 20)[:9]
    assert drawn(text, 9) != drawn(text, 9, seed=7)
    assert len({point[0] for point in drawn(text, 20)}) == 20


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("RANGE(1)", "RANGE needs two numbers"),
        ("RANGE(1, x)", "RANGE needs two numbers"),
        ("RANGE(1, 2, log, 3)", "RANGE needs two numbers"),
        ("RANGE(TRUE, 2)", "RANGE needs two numbers"),
        ("RANGE(2, 1)", "RANGE from 2 to 1 is empty"),
        ("RANGE(2, 2)", "RANGE from 2 to 2 is empty"),
        ("RANGE(0, 2, log)", "RANGE from 0 has no logarithm"),
        ("RANGE(1, 2, lin)", "RANGE has no scale lin"),
        ("CANDIDATES()", "CANDIDATES needs a value"),
    ],
)
def test_what_is_wrong_with_a_space_is_said_at_its_place(value: str, message: str) -> None:
    found, errors = space(f"a = {value}, b = CANDIDATES(1, 2)")
    assert [error.message for error in errors] == [message]
    assert errors[0].span is not None
    assert errors[0].hint
    assert [each.varied.key for each in found] == ["b"]
