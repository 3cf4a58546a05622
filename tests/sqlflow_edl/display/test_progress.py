"""Progress in words."""

from __future__ import annotations

import pytest

from edl.jobs.events import EpochEnd, Progress, Tally, TrialEnd
from sqlflow_edl.display import progress


def test_a_line_says_epoch_share_loss_metric_speed_and_time_left() -> None:
    event = Progress("training", 300, 1000, 50.0, epoch=3, epochs=10, step=30, loss=0.123456789)
    line = progress.live(event, {"loss": 0.2, "accuracy": 0.75, "f1": 0.5})
    assert line == "  epoch 3/10 ━━━╌╌╌╌╌╌╌ 30%  loss 0.1235  accuracy 0.75  50 rows/s  14 s left"


def test_the_first_steps_promise_nothing() -> None:
    assert "left" not in progress.live(Progress("training", 1, 1000, 0.5, epoch=1, epochs=9), {})
    assert "33 min left" in progress.live(Progress("training", 10, 1000, 0.5, epoch=1, epochs=9), {})


def test_early_stopping_makes_the_time_left_an_upper_bound() -> None:
    line = progress.live(Progress("training", 300, 1000, 50.0, epoch=3, epochs=10, may_end_early=True), {})
    assert line.endswith("50 rows/s  at most 14 s left")


@pytest.mark.parametrize(
    ("rows", "total", "wanted"),
    [(0, 0, "prediction ╌╌╌╌╌╌╌╌╌╌ 0%"), (5, 10, "━━━━━╌╌╌╌╌ 50%"), (11, 10, "━━━━━━━━━━ 100%")],
)
def test_the_bar_is_the_share_of_the_rows(rows: int, total: int, wanted: str) -> None:
    assert wanted in progress.live(Progress("prediction", rows, total, 0.0), {})


@pytest.mark.parametrize(
    ("tally", "wanted"),
    [
        (Tally(1200, 2, 5, instances=2), "tasks 1,200 todo 2 doing 5 done  2 instances"),
        (Tally(0, 1, 7, instances=1, relaunches=1), "tasks 0 todo 1 doing 7 done  1 instance  1 relaunch"),
        (Tally(0, 0, 8, relaunches=3), "tasks 0 todo 0 doing 8 done  0 instances  3 relaunches"),
        (
            Tally(9, 2, 5, instances=2, waiting=3),
            "tasks 9 todo 2 doing 5 done  2 instances  3 waiting for a slot",
        ),
        (Tally(9, 0, 0, waiting=3), "waiting for a slot"),
        (Tally(9, 0, 4, waiting=3), "tasks 9 todo 0 doing 4 done  waiting for a slot"),
        (
            Tally(9, 0, 0, instances=2, cut_off=1),
            "tasks 9 todo 0 doing 0 done  2 instances  1 cut off (sqlflow job says from what)",
        ),
        (
            Tally(9, 0, 0, waiting=1, starting=2),
            "tasks 9 todo 0 doing 0 done  0 instances  1 waiting for a slot",
        ),
    ],
)
def test_a_distributed_job_says_where_its_tasks_and_instances_stand(tally: Tally, wanted: str) -> None:
    assert progress.live(None, {}, tally) == f"  {wanted}"
    reached = Progress("prediction", 5, 10, 0.0)
    assert progress.live(reached, {}, tally) == f"{progress.live(reached, {})}  {wanted}"


def test_an_epoch_leaves_out_what_no_training_changes() -> None:
    measured = {"loss": 0.4, "mase": 0.75, "seasonal_naive_mase": 0.9, "auto_ets_mase": 0.7}
    assert (
        progress.epoch(EpochEnd(1, 10, 0.5, measured, 1.0))
        == "  epoch 1: loss 0.5; validation loss 0.4, mase 0.75"
    )


def test_an_epoch_says_what_was_learnt_and_what_is_not_defined() -> None:
    event = EpochEnd(4, 40, None, {"loss": 0.5, "auc": None}, 1.0)
    assert progress.epoch(event) == "  epoch 4: loss not defined; validation loss 0.5, auc not defined"
    assert progress.epoch(EpochEnd(1, 1, 2.0, {}, 1.0)) == "  epoch 1: loss 2"
    assert progress.epoch(EpochEnd(1, 1200, 2.0, {}, 1.0, final=False)) == "  epoch 1, step 1,200: loss 2"


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [(0.2, "0 s"), (99, "99 s"), (600, "10 min"), (7200, "2 h"), (7800, "2 h 10 min"), (108_000, "30 h")],
)
def test_time_left_is_in_the_unit_that_suits_it(seconds: float, wanted: str) -> None:
    assert progress.format_remaining(seconds) == wanted


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        (
            TrialEnd(1, 12, "Linear (torch)", "rmse", 0.123456, 2.345, best=True, left=57.9),
            "  trial 1/12 Linear (torch): rmse 0.1235, the best (2.3 s; 58 s left)",
        ),
        (
            TrialEnd(2, 12, "Linear (torch)", "auc", 0.5, 2.0),
            "  trial 2/12 Linear (torch): auc 0.5 (2.0 s)",
        ),
        (
            TrialEnd(3, 12, "Linear (torch)", "auc", None, 2.0, error="it failed", left=-3.0),
            "  trial 3/12 Linear (torch): it failed (2.0 s; 0 s left)",
        ),
    ],
)
def test_a_trial_says_how_good_it_was_or_why_it_failed_and_what_time_is_left(
    event: TrialEnd, wanted: str
) -> None:
    assert progress.trial(event) == wanted


def test_a_search_says_how_many_trials_have_ended() -> None:
    assert "search ━━━━━╌╌╌╌╌ 50%" in progress.live(Progress("search", 6, 12, 0.0), {})
