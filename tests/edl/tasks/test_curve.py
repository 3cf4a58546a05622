"""The learning curve in bounded memory, the best epoch, and for how many epochs training has gained nothing."""

from __future__ import annotations

import itertools

import pytest

from edl.jobs.events import EpochEnd
from edl.tasks import encoding
from edl.tasks.curve import LIMIT, LearningCurve, Standing, Thinned


def thinned(count: int) -> Thinned[int]:
    series: Thinned[int] = Thinned()
    for item in range(count):
        series.add(item)
    return series


def curve(losses: list[float | None], min_delta: float = 0.0) -> LearningCurve:
    """Epochs with these validation losses; in the middle of each, a round that does not end it."""
    found = LearningCurve()
    for epoch, loss in enumerate(losses, 1):
        found.add(EpochEnd(epoch, 10 * epoch - 5, 0.0, {"loss": -1.0}, 1.0, final=False), min_delta)
        found.add(EpochEnd(epoch, 10 * epoch, 0.0, {"loss": loss, "accuracy": 0.1 * epoch}, 1.0), min_delta)
    return found


def after(losses: list[float | None], min_delta: float = 0.0) -> Standing:
    return curve(losses, min_delta).standing


def test_a_short_series_is_kept_whole() -> None:
    assert thinned(0).items == []
    assert thinned(LIMIT).items == list(range(LIMIT))


@pytest.mark.parametrize("count", [LIMIT + 1, 2 * LIMIT, 2 * LIMIT + 1, 12_345, 90_000])
def test_a_long_series_keeps_evenly_spaced_items_and_both_ends(count: int) -> None:
    items = thinned(count).items
    assert LIMIT // 2 <= len(items) <= LIMIT + 1
    assert (items[0], items[-1]) == (0, count - 1)
    assert len({b - a for a, b in itertools.pairwise(items[:-1])}) == 1


def test_a_series_goes_on_from_its_stored_form() -> None:
    series = encoding.decode(encoding.encode(thinned(5_000)), Thinned[int])
    for item in range(5_000, 9_000):
        series.add(item)
    assert series == thinned(9_000)


def test_a_curve_keeps_its_first_last_and_best_epoch_whatever_is_dropped_between() -> None:
    epochs, best = 20_000, 7_777
    found = LearningCurve()
    for epoch in range(1, epochs + 1):
        found.add(EpochEnd(epoch, epoch, 1.0, {"loss": float(abs(epoch - best))}, 1.0))
    kept = [row.epoch for row in found.rows]
    assert {1, best, epochs} <= {*kept}
    assert kept == sorted(kept)
    assert len(kept) <= LIMIT + 2
    assert (found.epochs, found.standing.best) == (epochs, best)


def test_rounds_within_epochs_do_not_displace_the_ends() -> None:
    found = curve([1.0] * 3_000)
    ends = [row for row in found.rows if row.final]
    assert len(ends) >= LIMIT // 2
    assert len(found.rows) <= 2 * (LIMIT + 2)


def test_without_held_out_rows_the_lowest_training_loss_is_the_best_row() -> None:
    found = LearningCurve()
    for epoch, loss in enumerate([3.0, None, 1.0, 2.0], 1):
        found.add(EpochEnd(epoch, epoch, loss, {}, 1.0))
    assert found.best is not None
    assert found.best.epoch == 3


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


def test_epochs_without_held_out_rows_are_left_out_of_the_standing() -> None:
    found = LearningCurve()
    found.add(EpochEnd(1, 10, 0.5, {}, 1.0))
    assert found.standing == Standing()
