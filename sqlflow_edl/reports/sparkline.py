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
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return ""
    if len(known) > width:
        step = (len(known) - 1) / (width - 1)
        known = [known[round(place * step)] for place in range(width)]
    low, high = min(known), max(known)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((value - low) * scale)] for value in known)
