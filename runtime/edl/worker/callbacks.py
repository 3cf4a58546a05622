"""Calls of a program's callbacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from edl.callbacks import Callback, Control
from edl.errors import JobError
from edl.evaluation.measuring import LOSS
from edl.jobs.events import EpochEnd, Figures
from edl.program import Program, user_code
from edl.tasks.curve import Thinned

Logs = tuple[tuple[int, dict[str, float]], ...]  # what callbacks got at the ends of epochs, by epoch


class Callbacks:
    """Callbacks of a program. They get the logs of every epoch once, also of one that others trained or concluded.

    `control` is what they control the training with.
    """

    def __init__(self, program: Program, control: Control) -> None:
        self._callbacks = program_callbacks(program)
        self._program = program
        self._control = control
        self._given: Thinned[tuple[int, dict[str, float]]] = Thinned()
        self._epoch = 0  # last one in it
        self._before: Logs = ()  # of the checkpoint that training resumed from
        self._began = False

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    @property
    def logs(self) -> Logs:
        """Logs that the callbacks got, for a checkpoint."""
        return tuple(self._given.items)

    def resume(self, logs: Logs) -> None:
        """Repeat the logs of a checkpoint, now or at the begin of training."""
        self._before = logs
        if self._began:
            self._repeat()

    def begin(self) -> None:
        """Call `on_train_begin`."""
        self._call(lambda callback: callback.on_train_begin(self._control))
        self._began = True
        self._repeat()

    def end_epochs(self, curve: Sequence[EpochEnd]) -> None:
        """Call `on_epoch_end` for the epochs of the curve that other workers concluded."""
        for row in curve:
            if row.final and row.epoch > self._epoch:
                self.end_epoch(row.epoch, row.loss, row.metrics)

    def end_epoch(self, epoch: int, loss: float | None, values: Figures) -> None:
        """Call `on_epoch_end` with the training loss and the metrics on the validation rows."""
        if self._callbacks:
            named = {("validation_loss" if name == LOSS else name): value for name, value in values.items()}
            self._end_epoch(epoch, _known_values({LOSS: loss, **named}))

    def end(self, figures: Figures) -> None:
        """Call `on_train_end`."""
        self._call(lambda callback: callback.on_train_end(_known_values(figures)))

    def _repeat(self) -> None:
        for epoch, logs in self._before:
            if epoch > self._epoch:
                self._end_epoch(epoch, logs)

    def _end_epoch(self, epoch: int, logs: dict[str, float]) -> None:
        self._given.add((epoch, logs))
        self._epoch = max(self._epoch, epoch)
        self._call(lambda callback: callback.on_epoch_end(epoch, logs, self._control))

    def _call(self, call: Callable[[Callback], None]) -> None:
        with user_code(self._program.file, "a callback"):
            for callback in self._callbacks:
                call(callback)


def program_callbacks(program: Program) -> list[Callback]:
    """Return the program's callbacks. Raises JobError if one is not an edl.Callback."""
    if not program.has("callbacks"):
        return []
    all_callbacks = program.call("callbacks")
    for callback in all_callbacks:
        if not isinstance(callback, Callback):
            raise JobError(
                f"callbacks in {program.file} gives a {type(callback).__name__}, which is not an edl.Callback",
                hint="from edl import Callback, and derive from it",
            )
    return list(all_callbacks)


def _known_values(values: Figures) -> dict[str, float]:
    return {name: math.nan if value is None else value for name, value in values.items()}
