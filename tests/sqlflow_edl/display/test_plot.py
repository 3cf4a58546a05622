"""Curves in characters."""

from __future__ import annotations

import pytest

from sqlflow_edl.display.plot import COLUMNS, LINES, plot_shares

STEEP = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]


def test_a_perfect_curve_goes_up_at_the_left_and_along_the_top() -> None:
    lines = plot_shares(STEEP, "x", "y", width=80, blocks=False)
    assert lines[0] == "   y"
    assert lines[1] == f" 1 |{'*' * COLUMNS}"
    assert all(line[4] == "*" for line in lines[1 : LINES + 1])
    assert lines[LINES][:4] == " 0 |"
    assert lines[LINES + 1] == f"   +{'-' * COLUMNS}"
    assert lines[LINES + 2].split() == ["0", "x", "1"]


def test_dots_are_finer_than_characters_and_the_diagonal_is_sparse() -> None:
    lines = plot_shares(STEEP, "x", "y", width=80)
    assert lines[1].startswith(f" 1 │⡏{'⠉' * (COLUMNS - 3)}")
    assert lines[LINES // 2][4] == "⡇"
    assert any(character not in "⡇ " for character in lines[LINES // 2][5:])


@pytest.mark.parametrize("width", [20, 25, 44, 200])
def test_a_plot_fits_the_terminal(width: int) -> None:
    lines = plot_shares(STEEP, "false positive rate", "y", width=width)
    assert max(map(len, lines)) == min(width, 44)


def test_a_narrow_terminal_and_a_curve_of_one_point_have_no_plot() -> None:
    assert plot_shares(STEEP, "x", "y", width=19) == []
    assert plot_shares(STEEP[:1], "x", "y", width=80) == []
