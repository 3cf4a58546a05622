"""Calibration of a classifier on its validation rows: a temperature of its probabilities, and thresholds by metric.

Temperature scaling (Guo et al., 2017, "On calibration of modern neural networks") divides the logits by one number,
which minimises the log loss of the validation rows. It changes no order of the classes, so no class that is predicted
without a threshold.
"""

from __future__ import annotations

import math

import msgspec

THRESHOLD_METRICS = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "mcc",
)  # metrics by which a threshold may be chosen


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Least probability of the second of two classes with the highest `value` of a metric."""

    probability: float
    value: float


class Calibration(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="calibration", tag_field="kind"
):
    """Calibration on validation rows.

    `thresholds` are those of two classes by metric, of the calibrated probabilities. `log_loss` and `error`, the
    expected calibration error in 15 bins of the most probable class, are those before and after dividing the logits by
    the `temperature`; they are empty if it was not wanted.
    """

    thresholds: dict[str, Threshold] = {}
    temperature: float = 1.0
    log_loss: tuple[float, ...] = ()
    error: tuple[float, ...] = ()


def at_temperature(probability: float, temperature: float) -> float:
    """Return the probability of the second of two classes once logits are divided by the temperature."""
    if not 0 < probability < 1:
        return probability
    return 1 / (1 + math.exp(-(math.log(probability) - math.log1p(-probability)) / temperature))
