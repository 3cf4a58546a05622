"""Calibration of a classifier on its validation rows: a temperature of its probabilities, thresholds by metric, and
what they are chosen from, for display: curves of scores and the confusion matrix.

Temperature scaling (Guo et al., 2017, "On calibration of modern neural networks") divides the logits by one number,
which minimises the log loss of the validation rows. It changes no order of the classes, so no class that is predicted
without a threshold.
"""

from __future__ import annotations

import msgspec

# Metrics by which a threshold may be chosen.
THRESHOLD_METRICS = ("accuracy", "balanced_accuracy", "f1", "mcc")


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Least probability of the second of two classes with the highest `value` of a metric."""

    probability: float
    value: float


class ScoreCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of rows by their probability of one class. Its `position` counts from 0.

    `inside` is the weight of all rows of the class, `outside` of the others. `hits` and `alarms` are the weights of the
    rows, of the class and of the others, with at least the probability in `thresholds`. The thresholds descend.
    """

    position: int
    inside: float
    outside: float
    thresholds: tuple[float, ...]
    hits: tuple[float, ...]
    alarms: tuple[float, ...]


class Calibration(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="calibration", tag_field="kind"
):
    """Calibration on validation rows.

    `thresholds` are thresholds of the calibrated probabilities of two classes, by metric. `log_loss` and `error`, the
    expected calibration error in 15 bins of the most probable class, have the figures before and after dividing the
    logits by the `temperature`; they are empty if it was not wanted. `curves` has a curve for the second of two
    classes, or for each of several, with the probabilities before the temperature. `confusion` has the weights of rows
    by true and most probable class. Both are empty for many classes.
    """

    thresholds: dict[str, Threshold] = {}
    temperature: float = 1.0
    log_loss: tuple[float, ...] = ()
    error: tuple[float, ...] = ()
    curves: tuple[ScoreCurve, ...] = ()
    confusion: tuple[tuple[float, ...], ...] = ()
