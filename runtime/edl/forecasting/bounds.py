"""Bounds of forecasts: quantiles are in their order and apart from the forecast, and nothing is below 0 by choice.

A forecast and its quantiles come from different trees or outputs, so nothing else keeps them in order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edl.arrays import Array, Features
from edl.spec.forecast import Forecast

SCALE = "scale_dense"  # array of the features with the level and the scale of the series


def bound_forecasts(
    forecast: Forecast, quantiles: Sequence[float], scores: Array, features: Features
) -> Array:
    """Return the forecasts and their quantiles in rising order, (n, 1 + quantiles), within their bounds."""
    if forecast.gap and quantiles and isinstance(features, dict) and SCALE in features:
        scores = scores.astype(np.float64)
        if forecast.non_negative:
            scores[:, 0] = np.maximum(scores[:, 0], 0.0)
        gap = forecast.gap * features[SCALE][:, 1].astype(np.float64)
        low, high = scores[:, 0] - gap, scores[:, 0] + gap
        for place in range(len(quantiles), 0, -1):  # from the forecast down
            if quantiles[place - 1] < 0.5:
                low = scores[:, place] = np.minimum(scores[:, place], low)
        for place, share in enumerate(quantiles, 1):
            if share > 0.5:
                high = scores[:, place] = np.maximum(scores[:, place], high)
    return np.maximum(scores, 0) if forecast.non_negative else scores
