"""Keras' own callbacks, in edl's words."""

from __future__ import annotations

import math
from typing import Any

import keras
import pytest

from edl import Callback
from edl.errors import JobError
from edl.program.keras_callbacks import translate_callbacks


class Told:
    """A control that keeps what it is told."""

    learning_rate = 0.1

    def __init__(self) -> None:
        self.stopped = ""
        self.rates: list[float] = []

    def stop_training(self, reason: str) -> None:
        self.stopped = reason

    def set_learning_rate(self, rate: float) -> None:
        self.rates.append(rate)


def ours(*given: Any) -> list[Any]:
    return translate_callbacks(lambda: list(given), "model.py")()


def epochs_until_stopped(callback: Callback, name: str, values: list[float]) -> int:
    control = Told()
    for epoch, value in enumerate(values, 1):
        callback.on_epoch_end(epoch, {"loss": 1.0, name: value}, control)
        if control.stopped:
            return epoch
    return 0


@pytest.mark.parametrize(
    ("options", "name", "values", "epoch"),
    [
        ({"patience": 2}, "validation_loss", [3, 2, 2, 2, 1], 4),
        ({"patience": 2, "min_delta": 0.5}, "validation_loss", [3, 2.8, 2.6, 2], 3),
        ({"patience": 0}, "validation_loss", [3, 2, 2.1], 3),
        ({"patience": 1, "start_from_epoch": 3}, "validation_loss", [1, 2, 3, 4, 5], 5),
        ({"patience": 1, "baseline": 2.5}, "validation_loss", [3, 2], 1),
        ({"monitor": "val_accuracy", "patience": 1}, "accuracy", [0.5, 0.6, 0.6], 3),
        ({"monitor": "val_gain", "mode": "min", "patience": 1}, "gain", [3, 2, 2], 3),
        ({"monitor": "val_rmse", "patience": 1}, "rmse", [3, 2, 2], 3),
        ({"patience": 2}, "validation_loss", [math.nan, math.nan], 2),
        ({"patience": 2}, "validation_loss", [3, 2, 1, 0], 0),
    ],
)
def test_early_stopping_ends_the_training_as_in_keras(
    options: dict[str, Any], name: str, values: list[float], epoch: int
) -> None:
    [callback] = ours(keras.callbacks.EarlyStopping(**options))
    assert epochs_until_stopped(callback, name, values) == epoch


def test_a_figure_that_is_not_there_is_named() -> None:
    [callback] = ours(keras.callbacks.EarlyStopping(monitor="val_acuracy"))
    with pytest.raises(JobError, match="monitors val_acuracy") as caught:
        epochs_until_stopped(callback, "accuracy", [1.0])
    assert caught.value.hint == "did you mean accuracy?"


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (lambda epoch: 1 / (1 + epoch), [1.0, 0.5, pytest.approx(1 / 3)]),
        (lambda epoch, rate: rate if epoch < 1 else rate / 10, pytest.approx([0.1, 0.01, 0.001])),
    ],
    ids=["of the epoch", "of the epoch and the rate before"],
)
def test_a_schedule_gives_the_rate_of_each_epoch(schedule: Any, rates: Any) -> None:
    [callback] = ours(keras.callbacks.LearningRateScheduler(schedule))
    control = Told()
    callback.on_train_begin(control)
    callback.on_epoch_end(1, {}, control)
    callback.on_epoch_end(2, {}, control)
    assert control.rates == rates


def test_other_callbacks_are_passed_on_or_left_out() -> None:
    own = Callback()
    assert ours(own, keras.callbacks.TerminateOnNaN(), 3) == [own, 3]  # who calls them refuses what is none


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (keras.callbacks.CSVLogger("x.csv"), "Keras' CSVLogger"),
        (keras.callbacks.EarlyStopping(restore_best_weights=True), "uses restore_best_weights"),
        (keras.callbacks.LearningRateScheduler(lambda epoch, rate, more: rate), r"schedule\(epoch\)"),
    ],
)
def test_what_edl_has_no_words_for_is_refused_by_name(given: Any, words: str) -> None:
    with pytest.raises(JobError, match=words):
        ours(given)
