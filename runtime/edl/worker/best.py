"""The epochs' held-out losses: which epoch was the best, and whether training still gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import msgspec

from edl.nn.structure import Array
from edl.spec import Training
from edl.tasks.events import Figures

Weights = Mapping[str, Array]


class Standing(msgspec.Struct, frozen=True):
    """Where training stands; with the weights of the best epoch, all that a resumed job needs to know.

    best: the epoch of the lowest held-out loss, 0 before the first. since: epochs since a loss was lower than `mark`
    by more than `min_delta`.
    """

    best: int = 0
    loss: float = math.inf
    figures: Figures = {}
    mark: float = math.inf
    since: int = 0

    def after(self, epoch: int, figures: Figures, min_delta: float) -> Standing:
        """The standing after an epoch whose held-out rows gave `figures`; a loss that is no number gains nothing."""
        found = figures.get("loss")
        loss = math.inf if found is None else found
        standing = self
        if loss < self.loss:
            standing = msgspec.structs.replace(standing, best=epoch, loss=loss, figures=figures)
        if loss < self.mark - min_delta:
            return msgspec.structs.replace(standing, mark=loss, since=0)
        return msgspec.structs.replace(standing, since=self.since + 1)


class BestEpoch:
    """Follows the epochs of one job and keeps a copy of the best one's weights where they are wanted.

    training.early_stopping: epochs without gain after which training is to end. weights: copies those of now.
    """

    def __init__(self, training: Training, weights: Callable[[], Weights]) -> None:
        self._training = training
        self._weights = weights
        self.standing = Standing()
        self.kept: Weights | None = None

    def heard(self, epoch: int, figures: Figures) -> None:
        """An epoch has ended; figures: of the held-out rows."""
        self.standing = self.standing.after(epoch, figures, self._training.min_delta)
        if self._training.keep == "best" and self.standing.best == epoch:
            self.kept = self._weights()

    @property
    def exhausted(self) -> bool:
        """Whether nothing was gained for as long as early stopping allows."""
        return 0 < self._training.early_stopping <= self.standing.since
