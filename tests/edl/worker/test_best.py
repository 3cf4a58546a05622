"""Which epoch was the best, and for how long training has gained nothing."""

from __future__ import annotations

import pytest

from edl.tasks.events import EpochEnd
from edl.worker.best import Standing, standing


def after(losses: list[float | None], min_delta: float = 0.0) -> Standing:
    """Of epochs with these validation losses; in the middle of each, a round that is no end of it."""
    curve = []
    for epoch, loss in enumerate(losses, 1):
        curve.append(EpochEnd(epoch, 10 * epoch - 5, 0.0, {"loss": -1.0}, 1.0, final=False))
        curve.append(EpochEnd(epoch, 10 * epoch, 0.0, {"loss": loss, "accuracy": 0.1 * epoch}, 1.0))
    return standing(curve, min_delta)


@pytest.mark.parametrize(
    ("losses", "best", "since"),
    [
        ([3, 2, 1], 3, 0),
        ([3, 2, 2, 2], 2, 2),  # an equal loss is no gain
        ([3, 4, 2, 5, 5], 3, 2),
        ([3, None, 2, None, None], 3, 2),  # a loss that is no number is none
        ([None, None, None], 0, 3),
        ([1, 2, 3, 4], 1, 3),
        ([], 0, 0),
    ],
)
def test_the_best_epoch_and_the_epochs_without_gain(
    losses: list[float | None], best: int, since: int
) -> None:
    found = after(losses)
    assert (found.best, found.since) == (best, since)
    if best:
        assert found.figures == {"loss": losses[best - 1], "accuracy": 0.1 * best}


def test_small_gains_add_up_and_the_best_epoch_is_the_lowest_all_the_same() -> None:
    losses: list[float | None] = [10, 9.8, 9.6, 9.4, 9.2, 9.1]
    found = after(losses, min_delta=0.5)
    assert (found.best, found.since) == (6, 2)  # 9.4 is lower than 10 by more than 0.5
    assert after(losses[:3], min_delta=0.5) == Standing(3, 9.6, {"loss": 9.6, "accuracy": 0.1 * 3}, 10, 2)


def test_epochs_without_held_out_rows_are_left_out() -> None:
    assert standing([EpochEnd(1, 10, 0.5, {}, 1.0)], 0.0) == Standing()
