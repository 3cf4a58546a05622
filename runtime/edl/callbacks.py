"""`edl.Callback`: what a program may do between epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Control(Protocol):
    """What a callback may steer. learning_rate: that the program's optimizer was made with."""

    @property
    def learning_rate(self) -> float: ...

    def stop_training(self, reason: str) -> None:
        """End the training after this epoch; `reason` is shown to the user."""
        ...

    def set_learning_rate(self, rate: float) -> None:
        """Use `rate` from the next step on, whatever the program's `learning_rate` says."""
        ...


class Callback:
    """Base of callbacks; `callbacks()` of a program returns a list of them. Override what is needed."""

    def on_train_begin(self, control: Control) -> None:
        """Before the first step."""

    def on_epoch_end(self, epoch: int, metrics: Mapping[str, float], control: Control) -> None:
        """After epoch `epoch`, counted from 1.

        metrics: `loss`, the mean of the epoch's training loss, and with validation rows `validation_loss` and
        the program's metrics on them.
        """

    def on_train_end(self, metrics: Mapping[str, float]) -> None:
        """After the last step, with the final metrics."""
