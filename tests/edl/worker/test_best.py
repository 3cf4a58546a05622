"""Which epoch was the best, and when training has gained nothing for too long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edl.spec import Training
from edl.worker.best import BestEpoch


def follow(losses: list[float | None], **training: Any) -> tuple[BestEpoch, int]:
    """A job whose weights are the number of its epoch; after how many epochs it is exhausted, 0 if never."""
    epoch = 0
    best = BestEpoch(Training(**training), lambda: {"w": np.array(epoch)})
    for epoch, loss in enumerate(losses, 1):
        best.heard(epoch, {"loss": loss, "accuracy": 0.1 * epoch})
        if best.exhausted:
            return best, epoch
    return best, 0


@pytest.mark.parametrize(
    ("losses", "patience", "ends", "kept"),
    [
        ([3, 2, 1], 1, 0, 3),
        ([3, 2, 2, 2], 2, 4, 2),  # an equal loss is no gain
        ([3, 4, 2, 5, 5, 1], 2, 5, 3),
        ([3, None, 2, None, None], 2, 5, 3),  # a loss that is no number is none
        ([None, None, None], 3, 3, 0),
        ([1, 2, 3, 4], 0, 0, 1),
    ],
)
def test_training_ends_after_epochs_without_gain(
    losses: list[float | None], patience: int, ends: int, kept: int
) -> None:
    best, ended = follow(losses, early_stopping=patience, keep="best")
    assert ended == ends
    assert best.standing.best == kept
    if kept:
        assert best.kept is not None
        assert best.kept["w"] == kept
        assert best.standing.figures == {"loss": losses[kept - 1], "accuracy": 0.1 * kept}


def test_small_gains_add_up_and_the_best_epoch_is_the_lowest_all_the_same() -> None:
    losses: list[float | None] = [10, 9.8, 9.6, 9.4, 9.2, 9.1]
    best, ended = follow(losses, early_stopping=3, min_delta=0.5, keep="best")
    assert ended == 0  # 9.4 is lower than 10 by more than 0.5
    assert best.standing.best == 6
    best, ended = follow(losses, early_stopping=2, min_delta=0.5, keep="best")
    assert (ended, best.standing.best) == (3, 3)


def test_no_copy_is_made_where_the_last_weights_are_wanted() -> None:
    best, _ = follow([2, 1, 3])
    assert best.kept is None
    assert best.standing.best == 2
