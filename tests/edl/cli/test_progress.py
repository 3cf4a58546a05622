"""What is told on a terminal while a job runs."""

from __future__ import annotations

import io

import pytest

from edl.cli.progress import ProgressNarrator, clear_line
from edl.jobs.events import EpochEnd, Progress, TrialEnd


def progress(step: int, loss: float | None = 0.5) -> Progress:
    return Progress("training", step, 100, 10.0, epoch=1, epochs=2, step=step, loss=loss)


@pytest.mark.parametrize(("every", "steps"), [(0, []), (10, [12, 25, 30]), (20, [25])])
def test_the_loss_is_told_every_so_many_steps(every: int, steps: list[int]) -> None:
    file = io.StringIO()
    narrator = ProgressNarrator(file, every)
    for step in (3, 12, 19, 25, 30, 31):
        narrator(progress(step))
    assert file.getvalue().splitlines() == [f"epoch 1  step {step}  loss 0.5" for step in steps]


def test_an_epoch_is_a_line_with_the_figures_of_the_held_out_rows() -> None:
    file = io.StringIO()
    ProgressNarrator(file)(EpochEnd(2, 1000, 0.25, {"loss": 0.5, "auc": None}, 3.0))
    assert file.getvalue() == "epoch 2  step 1,000  loss 0.25  validation loss 0.5  validation auc none\n"


def test_a_trial_is_a_line_with_its_metric_or_its_error() -> None:
    file = io.StringIO()
    narrator = ProgressNarrator(file)
    narrator(TrialEnd(1, 12, "DNNRegressor (torch)", "rmse", 0.25, 3.0, best=True))
    narrator(TrialEnd(2, 12, "LinearRegressor (torch)", "rmse", None, 3.0, error="it failed"))
    assert file.getvalue().splitlines() == [
        "trial 1 of 12  DNNRegressor (torch)  rmse 0.25",
        "trial 2 of 12  LinearRegressor (torch)  it failed",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_of_progress_is_cleared_before_the_results() -> None:
    shown, logged = Terminal(), io.StringIO()
    for file in (shown, logged):
        ProgressNarrator(file)(progress(3))
        clear_line(file)
    assert shown.getvalue().endswith("loss 0.5\r\x1b[K")
    assert logged.getvalue() == ""
