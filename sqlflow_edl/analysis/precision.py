"""Precision of numbers in float32, in which models learn labels.

Numbers of float32 have 24 binary digits: those near 1,700,000,000 are 128 apart. Where that rounds a label by a part of
its standard deviation that matters, the model learns the label less a *centre* near its mean, and the centre is added
to its outputs in float64. All losses but those of a logarithm, and those of a user, depend on the difference between
prediction and label alone, so the model is the same.
"""

from __future__ import annotations

import math

from edl import spec
from sqlflow_edl.analysis.statistics.accumulators import rounded
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics

LOGARITHMIC = ("poisson", "gamma", "tweedie")  # losses of the logarithm of the prediction
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53  # largest relative errors of rounding
TOLERANCE = 2.0**-16  # rounding error in standard deviations that changes no model noticeably


def is_coarse(found: ColumnStatistics, precision: float = FLOAT32) -> bool:
    """Return True if rounding changes numbers by more than `TOLERANCE` of their standard deviation."""
    return max(abs(found.min), abs(found.max)) * precision > TOLERANCE * found.std > 0


def centred(column: str, found: ColumnStatistics) -> spec.RegressionLabel:
    """Return the label less a centre: the mean, rounded to the power of two below the standard deviation.

    Differences from so few digits are exact for numbers near the centre. found: with a standard deviation above 0.
    """
    unit = 2.0 ** math.floor(math.log2(found.std))
    centre = round(found.mean / unit) * unit
    return spec.RegressionLabel(column, rounded(found.mean - centre, found.std), found.std, centre)
