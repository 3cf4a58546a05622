"""Charts of lines: the learning curve, and what the validation rows tell about scores and errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlflow_edl.charts.svg import Frame, Point, drawing, element, legend
from sqlflow_edl.reports.text import number

if TYPE_CHECKING:
    from edl.jobs.events import EpochEnd
    from edl.spec import Residuals, ScoreCurve
    from edl.spec.residuals import MeansOfGroup

WIDTH, HEIGHT = 520, 220  # pixels
SIDE = 250  # of a square chart
MOST_POINTS = 200
BIN_ROWS = 50  # of a bin of probabilities, on average
LEAST_SHARE = 0.01  # of rows that have a lift: the lift of fewer is chance
_SHARES = (0.0, 1.0)


def learning_curve(epochs: Sequence[EpochEnd]) -> str:
    """Draw the losses of training and validation; empty for fewer than two epochs."""
    ends = [epoch for epoch in epochs if epoch.final]
    return line_chart(
        {
            "training loss": [(epoch.epoch, epoch.loss) for epoch in ends],
            "validation loss": [(epoch.epoch, epoch.metrics.get("loss")) for epoch in ends],
        },
        "epoch",
        whole=True,
    )


def metric_curve(epochs: Sequence[EpochEnd], name: str) -> str:
    """Draw a metric of the validation rows; empty for fewer than two epochs."""
    points = [(epoch.epoch, epoch.metrics.get(name)) for epoch in epochs if epoch.final]
    return line_chart({f"validation {name}": points}, "epoch", whole=True)


def line_chart(
    series: Mapping[str, Iterable[tuple[float, float | None]]], x_title: str, *, whole: bool = False
) -> str:
    """Draw a line for each series, in one scale; empty if no two points have different x.

    whole: x is a whole number. Values that are None or not finite are left out.
    """
    lines = {
        name: some_points
        for name, points in series.items()
        if (some_points := sample_points(_finite_points(points)))
    }
    all_points = [point for points in lines.values() for point in points]
    xs, ys = [x for x, _ in all_points], [y for _, y in all_points]
    if len(set(xs)) < 2:
        return ""
    frame = Frame.around((min(xs), max(xs)), (min(ys), max(ys)), WIDTH, HEIGHT)
    drawn = [frame.axes(x_title, whole=whole)]
    for position, (name, points) in enumerate(lines.items()):
        last = f"{name} {number(points[-1][1])} at {x_title} {points[-1][0]:g}"
        drawn += [frame.line(points, position), frame.marker(points[-1], position, words=last)]
    summary = "; ".join(
        f"{name} from {number(points[0][1])} to {number(points[-1][1])}" for name, points in lines.items()
    )
    return drawing("".join((*drawn, legend(list(lines), WIDTH))), WIDTH, HEIGHT, f"{summary}, by {x_title}")


def _finite_points(points: Iterable[tuple[float, float | None]]) -> list[Point]:
    return [(x, y) for x, y in points if y is not None and math.isfinite(y)]


def sample_points(points: Sequence[Point]) -> Sequence[Point]:
    """Sample at most `MOST_POINTS` points, including the last one, to keep the page small."""
    stride = -(-len(points) // MOST_POINTS)
    return points[::-stride][::-1] if stride else []


# Scores of classes -----------------------------------------------------------------------------------------


def roc_points(curve: ScoreCurve) -> list[Point]:
    """Return false positive rate and recall from (0, 0) on; empty without rows on both sides."""
    if not (curve.inside and curve.outside):
        return []
    pairs = zip(curve.alarms, curve.hits, strict=True)
    return [(0.0, 0.0), *((alarms / curve.outside, hits / curve.inside) for alarms, hits in pairs)]


def precision_points(curve: ScoreCurve) -> list[Point]:
    """Return recall and precision; empty without rows on both sides."""
    if not (curve.inside and curve.outside):
        return []
    pairs = [(hits, alarms) for hits, alarms in zip(curve.hits, curve.alarms, strict=True) if hits + alarms]
    return [(hits / curve.inside, hits / (hits + alarms)) for hits, alarms in pairs]


def area(points: Sequence[Point]) -> float:
    """Return the area under the ROC curve by trapezoids."""
    return sum((right[0] - left[0]) * (left[1] + right[1]) / 2 for left, right in itertools.pairwise(points))


def roc(curve: ScoreCurve, name: str = "") -> str:
    """Draw the ROC curve, with a marker to be moved; empty without rows of both kinds."""
    points = roc_points(curve)
    if not points:
        return ""
    label = f"ROC curve{f' of {name}' if name else ''}, area {number(area(points))}"
    return _square(points, "false positive rate", "recall", label, "roc", diagonal=True)


def precision_recall(curve: ScoreCurve, name: str = "") -> str:
    """Draw precision by recall, with a marker to be moved; empty without rows of both kinds."""
    points = precision_points(curve)
    label = f"Precision by recall{f' of {name}' if name else ''}"
    return _square(points, "recall", "precision", label, "precision") if points else ""


def gain_points(curve: ScoreCurve) -> list[Point]:
    """Return the share of rows that are taken, the most probable first, and the share of the class among them; empty
    without rows on both sides.
    """
    if not (curve.inside and curve.outside):
        return []
    total = curve.inside + curve.outside
    pairs = zip(curve.hits, curve.alarms, strict=True)
    return [(0.0, 0.0), *(((hits + alarms) / total, hits / curve.inside) for hits, alarms in pairs)]


def lift_points(curve: ScoreCurve) -> list[Point]:
    """Return the share of rows that are taken, and how many times as many of them are of the class as of all rows."""
    return [(share, gain / share) for share, gain in gain_points(curve) if share >= LEAST_SHARE]


def gain(curve: ScoreCurve, name: str = "") -> str:
    """Draw the gain, with a marker to be moved; empty without rows of both kinds."""
    points = gain_points(curve)
    label = f"Share of {name or 'the class'} by the share of rows that are taken"
    return _square(points, "share of rows", "share found", label, "gain", diagonal=True) if points else ""


def lift(curves: Sequence[ScoreCurve], name: str = "") -> str:
    """Draw the lift of the first of several classes, in a scale for all of them; empty without rows of both kinds."""
    points = lift_points(curves[0]) if curves else []
    if not points:
        return ""
    most = max(times for curve in curves for _, times in lift_points(curve))
    label = f"Lift{f' of {name}' if name else ''}, {number(points[0][1])} to 1 times the mean share"
    return _square(points, "share of rows", "lift", label, "lift", high=max(most, 1.0))


def reliability(curve: ScoreCurve, name: str = "") -> str:
    """Draw the share of rows of the class by predicted probability, in bins of the probability: few for few rows."""
    bins = int(min(max((curve.inside + curve.outside) / BIN_ROWS, 4), 10))
    rows = [[0.0, 0.0, 0.0] for _ in range(bins)]  # of the class, of all, their probabilities
    before = (0.0, 0.0)
    for threshold, hits, alarms in zip(curve.thresholds, curve.hits, curve.alarms, strict=True):
        bin_sums = rows[min(int(threshold * bins), bins - 1)]
        inside, outside = hits - before[0], alarms - before[1]
        before = hits, alarms
        bin_sums[0] += inside
        bin_sums[1] += inside + outside
        bin_sums[2] += threshold * (inside + outside)
    points = [(total / of_all, of_class / of_all) for of_class, of_all, total in rows if of_all > 0]
    if len(points) < 2:
        return ""
    label = f"Share of rows by predicted probability{f' of {name}' if name else ''}"
    return _square(
        points, "predicted probability", "share of rows", label, "reliability", diagonal=True, dots=True
    )


def _square(
    points: Sequence[Point],
    x_title: str,
    y_title: str,
    label: str,
    kind: str,
    *,
    diagonal: bool = False,
    dots: bool = False,
    high: float = 1.0,
) -> str:
    """Draw a line between 0 and 1 on both axes. high: end of the vertical one."""
    frame = Frame.around(_SHARES, (0.0, high), SIDE, SIDE)
    parts = [frame.axes(x_title), element("text", y_title, x=8, y=14, fill_opacity=0.75)]
    if diagonal:
        at = frame.x, frame.y
        path = f"M{at[0](0):.1f} {at[1](0):.1f}L{at[0](1):.1f} {at[1](1):.1f}"
        parts.append(
            element("path", d=path, stroke="currentColor", stroke_opacity=0.4, stroke_dasharray="3 3")
        )
    parts.append(frame.line(points, data_line=kind))
    if dots:
        parts += [
            frame.marker(point, words=f"{x_title} {number(point[0])}, {y_title} {number(point[1])}")
            for point in points
        ]
    else:
        parts.append(frame.marker(points[len(points) // 2], 1, data_marker=kind, visibility="hidden"))
    ends = {
        "data_left": frame.x.start,
        "data_right": frame.x.end,
        "data_top": frame.y.end,
        "data_bottom": frame.y.start,
        "data_high": round(frame.y.high, 6),
    }
    return drawing("".join(parts), SIDE, SIDE, label, **ends)


# Errors of a number ----------------------------------------------------------------------------------------


def error_curve(residuals: Residuals) -> str:
    """Draw the absolute errors of test or validation rows, from the least to the largest."""
    count = len(residuals.quantiles)
    points = [(100 * place / count, error) for place, error in enumerate(residuals.quantiles, 1)]
    return line_chart({"absolute error": points}, "percent of the rows")


def predicted_actual(means: Sequence[MeansOfGroup]) -> str:
    """Draw the mean label of groups of rows by their mean prediction; empty for fewer than two groups."""
    if len(means) < 2:
        return ""
    values = [group.predicted for group in means] + [group.actual for group in means]
    ends = min(values), max(values)
    if not ends[0] < ends[1]:
        return ""
    rounded = Frame.around(ends, ends, HEIGHT + 60, HEIGHT + 60).y
    ends = rounded.low, rounded.high
    frame = Frame.around(ends, ends, HEIGHT + 60, HEIGHT + 60)
    path = f"M{frame.x(ends[0]):.1f} {frame.y(ends[0]):.1f}L{frame.x(ends[1]):.1f} {frame.y(ends[1]):.1f}"
    parts = [
        frame.axes("mean prediction"),
        element("text", "mean label", x=8, y=14, fill_opacity=0.75),
        element("path", d=path, stroke="currentColor", stroke_opacity=0.4, stroke_dasharray="3 3"),
    ]
    for group in means:
        words = (
            f"predicted {number(group.predicted)}, actual {number(group.actual)}, {group.weight:,.10g} rows"
        )
        parts.append(frame.marker((group.predicted, group.actual), words=words))
    first, last = means[0], means[-1]
    summary = (
        f"Predicted against actual in {len(means)} groups: {number(first.predicted)} is {number(first.actual)}, "
        f"{number(last.predicted)} is {number(last.actual)}"
    )
    return drawing("".join(parts), HEIGHT + 60, HEIGHT + 60, summary)
