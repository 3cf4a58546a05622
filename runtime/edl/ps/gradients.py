"""Gradients as they are pushed, and their mean over the pushes of a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edl.embeddings import sum_parts
from edl.embeddings.table import Floats, Ids


class RowGradients(NamedTuple):
    """Distinct ids, int64 (n,), and their gradients, float32 (n, dim)."""

    ids: Ids
    values: Floats


class Gradients(NamedTuple):
    """Gradients of one push, or the mean of several. `flat` has size 0 for none. `rows` counts averaged rows."""

    flat: Floats
    tables: dict[str, RowGradients]
    rate: float
    rows: int


def mean_gradients(pushes: Sequence[Gradients]) -> Gradients:
    """Return the mean of pushes, weighted by their rows; the mean of a single push is bit-identical to it."""
    if len(pushes) == 1:
        return pushes[0]
    rows = sum(push.rows for push in pushes)
    shares = [np.float32(push.rows / rows) for push in pushes]
    flats = [push.flat * share for push, share in zip(pushes, shares, strict=True) if push.flat.size]
    names = dict.fromkeys(name for push in pushes for name in push.tables)
    tables = {}
    for name in names:
        parts = [
            (push.tables[name].ids, push.tables[name].values * share)
            for push, share in zip(pushes, shares, strict=True)
            if name in push.tables
        ]
        tables[name] = RowGradients(*sum_parts(parts))
    return Gradients(sum(flats[1:], flats[0]) if flats else pushes[0].flat, tables, pushes[0].rate, rows)
