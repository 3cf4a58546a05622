"""Precision of numbers in float32, in which models learn labels.

Numbers of float32 have 24 binary digits: those near 1,700,000,000 are 128 apart. Where that rounds a label by a part of
its standard deviation that matters, the model learns the label less a *centre* near its mean, and the centre is added
to its outputs in float64. All losses but logarithmic ones and a user's own depend on the difference between prediction
and label alone, so the model is the same.
"""

from __future__ import annotations

import math

LOGARITHMIC = ("poisson", "gamma", "tweedie")  # losses of the logarithm of the prediction
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53  # largest relative errors of rounding
TOLERANCE = 2.0**-16  # rounding error in standard deviations that changes no model noticeably


def is_coarse(least: float, most: float, std: float, precision: float = FLOAT32) -> bool:
    """Return True if rounding changes numbers of such moments by more than `TOLERANCE` of their deviation."""
    return max(abs(least), abs(most)) * precision > TOLERANCE * std > 0


def round_mean(mean: float, std: float) -> float:
    """Return the mean, rounded to the power of two below the standard deviation, which is above 0.

    Differences from a number of so few digits are exact near it.
    """
    unit = 2.0 ** math.floor(math.log2(std))
    return round(mean / unit) * unit
