"""Intervals of metrics: how much a figure of few rows may differ from the figure of all rows there could be.

All have 95 % confidence and take the rows as independent and equally weighted: Wilson's for an accuracy, Hanley and
McNeil's (1982) for an AUC, and the normal approximation for means of errors. The interval of the mean over folds is
the corrected t interval of Nadeau and Bengio (2003), because the trainings share rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edl.models.archive import Archive
from edl.spec import Residuals

# Student's t with 95 % confidence, by degrees of freedom from 1
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
)  # fmt: skip
NORMAL = 1.96  # standard deviations around a mean with 95 % confidence

Interval = tuple[float, float]


def measured_rows(archive: Archive) -> tuple[str, int]:
    """Return the kind and the number of the rows that the metrics were measured on: test, validation or training."""
    spec, rows = archive.spec, archive.spec.rows
    test = rows.test
    if archive.trials and test:  # rows that chose nothing
        return "test", test
    if rows.validation:
        return "validation", spec.validation_rows
    return "training", rows.training


def intervals(archive: Archive) -> dict[str, Interval]:
    """Return the intervals of the metrics that have one; none of training rows, or of weighted ones."""
    kind, count = measured_rows(archive)
    if archive.spec.weights is not None or kind == "training" or not count:
        return {}
    by_metric: dict[str, Interval] = {}
    accuracy, auc = archive.metrics.get("accuracy"), archive.metrics.get("auc")
    if accuracy is not None:
        by_metric["accuracy"] = wilson(accuracy, count)
    curves = archive.calibration.curves if archive.calibration else ()
    if auc is not None and len(curves) == 1 and curves[0].inside and curves[0].outside:
        by_metric["auc"] = hanley_mcneil(auc, curves[0].inside, curves[0].outside)
    if archive.residuals is not None:
        by_metric |= _of_errors(archive.residuals, archive.metrics)
    return {name: ends for name, ends in by_metric.items() if all(map(math.isfinite, ends))}


def mean_of_folds(values: Sequence[float], ratio: float) -> Interval:
    """Return the interval of the mean of a metric over folds. ratio: of the validation to the training rows of a fold.

    There must be from 2 to 20 values.
    """
    count = len(values)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = STUDENT[count - 2] * math.sqrt(variance * (1 / count + ratio))
    return mean - half, mean + half


def wilson(share: float, count: int) -> Interval:
    """Return the Wilson interval of a share of `count` independent rows, with 95 % confidence."""
    z2 = NORMAL**2 / count
    middle, half = share + z2 / 2, math.sqrt(z2 * (share * (1 - share) + z2 / 4))
    return max((middle - half) / (1 + z2), 0.0), min((middle + half) / (1 + z2), 1.0)


def hanley_mcneil(auc: float, inside: float, outside: float) -> Interval:
    """Return the interval of the area under the ROC curve of so many rows of the class, and others."""
    both_inside, both_outside = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    spread = (
        auc * (1 - auc)
        + (inside - 1) * (both_inside - auc * auc)
        + (outside - 1) * (both_outside - auc * auc)
    )
    half = NORMAL * math.sqrt(max(spread, 0.0) / (inside * outside))
    return max(auc - half, 0.0), min(auc + half, 1.0)


def mean_interval(errors: npt.NDArray[np.float64]) -> Interval:
    """Return the interval of the mean of errors that are at least 0, by the normal approximation."""
    mean, half = float(errors.mean()), NORMAL * float(errors.std()) / math.sqrt(len(errors))
    return max(mean - half, 0.0), mean + half


def _of_errors(residuals: Residuals, metrics: dict[str, float | None]) -> dict[str, Interval]:
    """Return the intervals of means of errors."""
    intervals: dict[str, Interval] = {}
    mae, rmse = metrics.get("mae"), metrics.get("rmse")
    if mae is not None:
        half = NORMAL * _deviation(residuals.quantiles) / math.sqrt(residuals.rows)
        intervals["mae"] = max(mae - half, 0.0), mae + half
    if rmse is not None:
        half = (
            NORMAL * _deviation([error * error for error in residuals.quantiles]) / math.sqrt(residuals.rows)
        )
        square = rmse * rmse
        intervals["rmse"] = math.sqrt(max(square - half, 0.0)), math.sqrt(square + half)
    return intervals


def _deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) * (value - mean) for value in values) / len(values))
