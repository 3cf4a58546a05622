"""The epochs' validation losses: which epoch was the best, and whether training still gains.

Whichever worker concludes an epoch makes this of the learning curve, so nothing of it has to be kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from edl.tasks.events import EpochEnd, Figures


class Standing(msgspec.Struct, frozen=True):
    """Where training stands.

    best: the epoch of the lowest validation loss, 0 before the first. since: epochs since a loss was lower than `mark`
    by more than `min_delta`.
    """

    best: int = 0
    loss: float = math.inf
    figures: Figures = {}
    mark: float = math.inf
    since: int = 0

    def after(self, epoch: int, figures: Figures, min_delta: float) -> Standing:
        """The standing after an epoch whose validation rows gave `figures`; a loss that is no number gains nothing."""
        found = figures.get("loss")
        loss = math.inf if found is None else found
        standing = self
        if loss < self.loss:
            standing = msgspec.structs.replace(standing, best=epoch, loss=loss, figures=figures)
        if loss < self.mark - min_delta:
            return msgspec.structs.replace(standing, mark=loss, since=0)
        return msgspec.structs.replace(standing, since=self.since + 1)


def standing(curve: Iterable[EpochEnd], min_delta: float) -> Standing:
    """After the epochs of the curve that had validation rows."""
    found = Standing()
    for row in curve:
        if row.final and row.metrics:
            found = found.after(row.epoch, row.metrics, min_delta)
    return found
