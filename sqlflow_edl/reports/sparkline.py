"""Learning curve in one line of text: a block for each epoch, or for a sample of the epochs."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTH = 40  # characters
BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int = WIDTH) -> str:
    """Draw a block for each value, in proportion to it; empty for fewer than two finite values.

    Of more than `width` values, `width` are taken at equal distances, including the first and the last.
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if len(finite) < 2:
        return ""
    if len(finite) > width:
        step = (len(finite) - 1) / (width - 1)
        finite = [finite[round(place * step)] for place in range(width)]
    low, high = min(finite), max(finite)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((value - low) * scale)] for value in finite)
