"""Combination of the embedding rows of several ids of one example into one vector."""

from __future__ import annotations

import math
from typing import Literal, get_args

from edl.errors import JobError, did_you_mean

Combiner = Literal["sum", "mean", "sqrtn"]


def check_combiner(combiner: str | None) -> None:
    """Raise JobError if there is no such combiner."""
    if combiner is not None and combiner not in get_args(Combiner):
        raise JobError(
            f"rows cannot be combined by {combiner}", hint=did_you_mean(combiner, get_args(Combiner))
        )


def divisor(combiner: Combiner, count: int) -> float:
    """Return the factor for the sum of `count` rows."""
    return {"sum": 1.0, "mean": 1.0 / count, "sqrtn": 1.0 / math.sqrt(count)}[combiner]


def require_combiner(combiner: Combiner | None, table: str) -> Combiner:
    """Return the combiner of a layer that reads lists. Raises JobError if it has none."""
    if combiner is None:
        raise JobError(
            f"the table {table} is read by lists of ids, and nothing says how they become one vector",
            hint=f"Embedding(..., combiner=...): {', '.join(get_args(Combiner))}",
        )
    return combiner
