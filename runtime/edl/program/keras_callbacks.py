"""Keras callbacks in a module's `callbacks()`, as far as edl has equivalents.

The training loop is not Keras' `fit`, so its callbacks are not called: common ones are replaced by an equivalent
`edl.Callback`, and others are rejected by name. Keras is not imported here; a callback is recognised by its class
name.

    EarlyStopping             ends the training; `val_accuracy` means the module's metric `accuracy`
    LearningRateScheduler     schedule(epoch, rate) or schedule(epoch), epochs counted from 0
    TerminateOnNaN            is ignored: a loss that is not finite ends every job
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from edl.callbacks import Callback, Control
from edl.errors import JobError, did_you_mean

_LOWER_IS_BETTER = ("loss", "error", "rmse", "mse", "mae", "mape")  # in a metric's name, for the mode `auto`


def translate_callbacks(callbacks: Callable[[], Any], file: str) -> Callable[[], list[Any]]:
    """Wrap `callbacks` so that Keras callbacks are replaced.

    The wrapper raises JobError for one without an equivalent.
    """

    def in_our_words() -> list[Any]:
        return [ours for callback in callbacks() for ours in _translate_each(callback, file)]

    return in_our_words


def _translate_each(callback: Any, file: str) -> Iterator[Any]:
    kind = type(callback)
    if isinstance(callback, Callback) or not kind.__module__.startswith("keras."):
        yield callback
    elif kind.__name__ == "EarlyStopping":
        yield EarlyStopping(callback, file)
    elif kind.__name__ == "LearningRateScheduler":
        yield LearningRateScheduler(callback, file)
    elif kind.__name__ != "TerminateOnNaN":
        raise JobError(
            f"callbacks in {file} gives Keras' {kind.__name__}, which has no equivalent in edl",
            hint="derive from edl.Callback; EarlyStopping and LearningRateScheduler of Keras are supported",
        )


class EarlyStopping(Callback):
    """Callback that ends training after `patience` epochs without a metric improvement of more than `min_delta`."""

    def __init__(self, callback: Any, file: str) -> None:
        if callback.restore_best_weights:
            raise JobError(
                f"callbacks in {file} uses restore_best_weights of EarlyStopping, which is not supported",
                hint="leave restore_best_weights out",
            )
        self._monitor = str(callback.monitor)
        self._name = _name(self._monitor)
        lower = any(word in self._name.casefold() for word in _LOWER_IS_BETTER)
        self._higher = callback.mode == "max" or (callback.mode == "auto" and not lower)
        self._least = abs(float(callback.min_delta))
        self._patience = max(int(callback.patience), 1)
        self._after = int(callback.start_from_epoch)
        self._best = math.inf if callback.baseline is None else self._sign(float(callback.baseline))
        self._waited = 0

    def on_epoch_end(self, epoch: int, metrics: Mapping[str, float], control: Control) -> None:
        if epoch <= self._after:
            return
        if self._name not in metrics:
            hint = did_you_mean(self._name, metrics)
            raise JobError(
                f"EarlyStopping monitors {self._monitor}, which is not a metric of an epoch", hint=hint
            )
        value = self._sign(metrics[self._name])
        self._waited += 1
        if value < self._best - self._least:
            self._best, self._waited = value, 0
        if self._waited >= self._patience:
            control.stop_training(f"no better {self._monitor} in {self._waited} epochs")

    def _sign(self, value: float) -> float:
        """Return the value with the sign by which lower is better."""
        return -value if self._higher else value


class LearningRateScheduler(Callback):
    """Callback that sets the rate of each epoch to schedule(epoch, previous rate), or to schedule(epoch)."""

    def __init__(self, callback: Any, file: str) -> None:
        self._schedule = callback.schedule
        self._takes_rate = _takes(self._schedule, 0, 0.1)
        self._rate = 0.0
        if not self._takes_rate and not _takes(self._schedule, 0):
            raise JobError(
                f"callbacks in {file} gives a LearningRateScheduler whose schedule is called neither as "
                "schedule(epoch, rate) nor as schedule(epoch)",
                hint="define learning_rate(steps) in the module: it gives the rate of each step",
            )

    def on_train_begin(self, control: Control) -> None:
        self._rate = control.learning_rate
        self._set(0, control)

    def on_epoch_end(self, epoch: int, metrics: Mapping[str, float], control: Control) -> None:
        self._set(epoch, control)

    def _set(self, epoch: int, control: Control) -> None:
        self._rate = float(self._schedule(epoch, self._rate) if self._takes_rate else self._schedule(epoch))
        control.set_learning_rate(self._rate)


def _takes(function: Callable[..., Any], *arguments: Any) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    return True


def _name(monitor: str) -> str:
    """Return edl's name of the metric: metrics are measured on the validation rows."""
    if monitor == "val_loss":
        return "validation_loss"
    return monitor.removeprefix("val_")
