"""`edl.Callback`: hooks of a program between epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Control(Protocol):
    """Control of the training by a callback. `learning_rate` is the optimizer's initial rate."""

    @property
    def learning_rate(self) -> float: ...

    def stop_training(self, reason: str) -> None:
        """End the training after this epoch; `reason` is shown to the user."""
        ...

    def set_learning_rate(self, rate: float) -> None:
        """Use `rate` from the next step on, overriding the program's `learning_rate`."""
        ...


class Callback:
    """Base of callbacks. `callbacks()` of a program returns a list of them."""

    def on_train_begin(self, control: Control) -> None:
        """Handle the start of training, before the first step."""

    def on_epoch_end(self, epoch: int, metrics: Mapping[str, float], control: Control) -> None:
        """Handle the end of epoch `epoch`, counted from 1.

        `metrics` holds `loss`, the mean of the epoch's training loss, and with validation rows `validation_loss` and
        the program's metrics on them.
        """

    def on_train_end(self, metrics: Mapping[str, float]) -> None:
        """Handle the end of training, after the last step, with the final metrics."""
