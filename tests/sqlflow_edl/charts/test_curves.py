"""Charts of lines."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from edl.jobs.events import EpochEnd
from edl.spec import Residuals, ScoreCurve
from edl.spec.residuals import MeansOfGroup
from sqlflow_edl.charts.curves import (
    HEIGHT,
    MOST_POINTS,
    WIDTH,
    area,
    error_curve,
    gain,
    gain_points,
    learning_curve,
    lift,
    lift_points,
    precision_points,
    precision_recall_chart,
    predicted_actual,
    reliability,
    roc,
    roc_points,
)


def ends(losses: list[float | None], held_out: list[float | None] | None = None) -> list[EpochEnd]:
    metrics = [{"loss": each} for each in held_out] if held_out else [{}] * len(losses)
    return [
        EpochEnd(epoch, epoch, loss, found, 1.0)
        for epoch, (loss, found) in enumerate(zip(losses, metrics, strict=True), 1)
    ]


def lines(svg: str) -> list[list[tuple[float, float]]]:
    """The points of each line."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    found = [each.attrib["points"] for each in root.iter() if each.tag.endswith("polyline")]
    return [
        [(float(x), float(y)) for x, y in (point.split(",") for point in points.split())] for points in found
    ]


def test_both_losses_fall_from_the_top_left_to_the_right_in_one_scale() -> None:
    loss, held_out = lines(learning_curve(ends([4.0, 2.0, 1.0], [5.0, 3.0, 2.0])))
    for line in (loss, held_out):
        assert [x for x, _ in line] == sorted(x for x, _ in line)
        assert [y for _, y in line] == sorted(y for _, y in line)
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line)
    assert held_out[0][1] < loss[0][1], "the greater loss is the higher one"
    assert held_out[2][1] == loss[1][1], "equal losses are equally high"


def test_round_numbers_are_written_beside_the_scale() -> None:
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", learning_curve(ends([4.0, 0.123456789])))
    assert texts == ["0", "1", "2", "3", "4", "1", "2", "epoch", "training loss"]


def test_one_epoch_is_no_curve() -> None:
    assert learning_curve([]) == ""
    assert learning_curve(ends([1.0], [2.0])) == ""


def test_what_is_not_defined_is_left_out() -> None:
    [line] = lines(learning_curve(ends([4.0, None, math.inf, 1.0], [None] * 4)))
    assert len(line) == 2
    assert "validation" not in learning_curve(ends([4.0, 1.0]))


def test_a_loss_that_stays_is_a_level_line() -> None:
    [line] = lines(learning_curve(ends([2.0, 2.0])))
    assert line[0][1] == line[1][1]


def test_of_many_epochs_some_are_drawn_with_the_last() -> None:
    [line] = lines(learning_curve(ends([1 / epoch for epoch in range(1, 10_002)])))
    assert MOST_POINTS / 2 < len(line) <= MOST_POINTS
    [whole] = lines(learning_curve(ends([1.0, 1 / 10_001])))
    assert line[-1][0] == whole[-1][0]


def test_rows_so_far_are_no_epoch() -> None:
    parts = [EpochEnd(1, step, 1.0, {}, 1.0, final=False) for step in (1, 2)]
    assert learning_curve([*parts, *ends([1.0])]) == ""


CURVE = ScoreCurve(1, 4.0, 4.0, (0.9, 0.6, 0.4, 0.1), (2.0, 3.0, 4.0, 4.0), (0.0, 1.0, 2.0, 4.0))


def test_a_roc_curve_goes_from_the_first_to_the_last_row() -> None:
    assert roc_points(CURVE) == [(0.0, 0.0), (0.0, 0.5), (0.25, 0.75), (0.5, 1.0), (1.0, 1.0)]
    assert area(roc_points(CURVE)) == 0.25 * 0.625 + 0.25 * 0.875 + 0.5
    [line] = lines(roc(CURVE))
    assert len(line) == 5
    assert 'aria-label="ROC curve, area 0.875"' in roc(CURVE)


def test_precision_is_drawn_by_recall() -> None:
    assert precision_points(CURVE) == [(0.5, 1.0), (0.75, 0.75), (1.0, 4 / 6), (1.0, 0.5)]
    assert 'data-marker="precision"' in precision_recall_chart(CURVE)


def test_reliability_has_a_point_for_each_used_bin_of_probabilities() -> None:
    [line] = lines(reliability(CURVE))
    assert len(line) == 4


def test_rows_of_one_class_have_no_curves() -> None:
    alone = ScoreCurve(1, 2.0, 0.0, (0.9,), (2.0,), (0.0,))
    assert [roc(alone), precision_recall_chart(alone), reliability(alone)] == ["", "", ""]


def test_errors_are_drawn_by_percent_of_the_rows() -> None:
    [line] = lines(error_curve(Residuals(4, (1.0, 2.0, 3.0, 10.0))))
    assert [y for _, y in line] == sorted((y for _, y in line), reverse=True)


# Gain, lift, predicted against actual -----------------------------------------------------------------------

_TAKEN = ScoreCurve(1, 20.0, 80.0, (0.9, 0.5, 0.1), (10.0, 18.0, 20.0), (0.0, 22.0, 80.0))


def test_the_gain_is_the_share_of_the_class_among_the_rows_that_are_taken() -> None:
    assert gain_points(_TAKEN) == [(0.0, 0.0), (0.1, 0.5), (0.4, 0.9), (1.0, 1.0)]
    assert 'data-line="gain"' in gain(_TAKEN, "yes")
    assert gain(ScoreCurve(1, 0.0, 5.0, (), (), ())) == ""


def test_the_lift_is_relative_to_the_share_of_the_class_in_all_rows() -> None:
    assert lift_points(_TAKEN) == [(0.1, 5.0), (0.4, pytest.approx(2.25)), (1.0, 1.0)]
    assert "Lift of yes, 5 to 1 times" in (drawn := lift([_TAKEN], "yes"))
    assert 'data-high="5.0"' in drawn or 'data-high="5"' in drawn
    assert lift([]) == ""


def test_predicted_is_drawn_against_actual_by_groups() -> None:
    drawn = predicted_actual([MeansOfGroup(1.0, 2.0, 30.0), MeansOfGroup(4.0, 3.5, 30.0)])
    assert "Predicted against actual in 2 groups: 1 is 2, 4 is 3.5" in drawn
    assert "predicted 4, actual 3.5, 30 rows" in drawn
    assert predicted_actual([MeansOfGroup(1.0, 2.0, 30.0)]) == ""
