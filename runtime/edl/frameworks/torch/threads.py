"""Number of threads per PyTorch operation.

OpenMP threads wait for each other at the end of every operation. Spinning threads take cores from other processes,
and beside one busy process a step may then take eighty times as long; threads that sleep at once cost a small
operation more than they gain. So threads spin briefly and then sleep (`edl.frameworks.ENVIRONMENT`), and

* a large model uses all of them: its operations take much longer than the spinning,
* a small model uses one, or a few while that is faster. The faster number depends on the load of the machine and
  must not affect the model: a few are only tried if they reproduce all gradients of a step bit for bit. (The order
  in which an operation adds up depends on its shapes and its threads, not on the numbers; parameter updates are
  elementwise.)
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence

import torch

_SHARED_WORK = 1e8  # rows x parameters of a call from which on all threads are used
_LEAST_WORK = 2e6  # rows x parameters below which one thread is always faster
_FEW = (4, 2)  # candidate numbers of threads of a small model

TRIAL = 8  # steps of a trial
LEAST_PAUSE, MOST_PAUSE = 64, 16_384  # steps between two trials
LONGER, MUCH_LONGER = 2, 16  # factors of the pause after a trial without change, and after a slow one
GAIN = 0.97  # fraction of the present step time that the other choice must beat
SLOW = 2.0  # multiple of the other choice's step time: the cores are needed elsewhere
PATIENCE = 3  # consecutive slow steps before a choice is abandoned

Tensors = Sequence[torch.Tensor]


class Threads:
    """Threads of a model with so many parameters, at most `most`."""

    def __init__(self, most: int, parameters: int) -> None:
        self._most = most
        self._parameters = parameters
        self._turns: dict[int, Turns] = {}

    def take(self, rows: int) -> None:
        """Set the threads for operations on so many rows, by size alone, so that equal jobs compute equal bits."""
        torch.set_num_threads(self._most if self._work(rows) >= _SHARED_WORK else 1)

    def may_vary(self, rows: int) -> bool:
        """Return True if steps of so many rows are worth a trial."""
        return self._most > 1 and _LEAST_WORK <= self._work(rows) < _SHARED_WORK

    def turns(self, rows: int, gradients: Callable[[], Tensors]) -> Turns:
        """Return the chooser for steps of so many rows. `gradients` returns the clipped gradients of one step,
        without side effects.
        """
        if rows not in self._turns:
            self._turns[rows] = Turns(rows, self._find_reproducible_number(gradients))
        return self._turns[rows]

    def _find_reproducible_number(self, gradients: Callable[[], Tensors]) -> int:
        """Return the largest candidate that reproduces the gradients of one thread."""
        alone = _compute_with_threads(1, gradients)
        possible = (threads for threads in _FEW if threads <= self._most)
        same = (
            count
            for count in possible
            if all(map(_same_bits, alone, _compute_with_threads(count, gradients)))
        )
        return next(same, 1)

    def _work(self, rows: int) -> int:
        return rows * self._parameters


class Turns:
    """Chooser between one thread and `few` for each step of `rows` rows, by speed. Other steps use one thread."""

    def __init__(self, rows: int, few: int) -> None:
        self.few = few
        self._rows = rows
        self._choice = ThreadChoice()
        self._began = 0.0
        self._varies = False

    def begin(self, rows: int) -> None:
        """Set the threads before a step."""
        self._varies = rows == self._rows and self.few > 1
        if self._varies:
            torch.set_num_threads(self.few if self._choice.way else 1)
            self._began = time.perf_counter()

    def end(self) -> None:
        """Record the time after a step."""
        if self._varies:
            self._choice.took(time.perf_counter() - self._began)
            torch.set_num_threads(1)


class ThreadChoice:
    """Choice of the faster of two alternatives, `way` 0 or 1. The other one is tried in trials of increasing distance.
    It starts with 0: that is never far slower.
    """

    def __init__(self) -> None:
        self.way = self._best = 0
        self._seconds = deque[float](maxlen=TRIAL), deque[float](maxlen=TRIAL)
        self._usual: float | None = None  # seconds of the alternative, or None if it was not tried yet
        self._pause = LEAST_PAUSE
        self._left = TRIAL  # steps until the next trial
        self._late = 0

    def took(self, seconds: float) -> None:
        """Record the time of a step."""
        self._seconds[self.way].append(seconds)
        slow = self._usual is not None and seconds > SLOW * self._usual
        if self.way != self._best:
            self._try(slow)
        else:
            self._go_on(slow)

    def _try(self, slow: bool) -> None:
        """Record one step of a trial."""
        seconds_of_way, other = self._seconds[self.way], self._seconds[1 - self.way]
        if slow:
            self._settle(self._best, self._pause * MUCH_LONGER)
        elif len(seconds_of_way) == TRIAL:
            faster = statistics.median(seconds_of_way) < GAIN * statistics.median(other)
            self._settle(*((self.way, LEAST_PAUSE) if faster else (self._best, self._pause * LONGER)))

    def _go_on(self, slow: bool) -> None:
        self._left -= 1
        self._late = self._late + 1 if slow and self._best else 0
        if self._late == PATIENCE:
            self._settle(0, self._pause * MUCH_LONGER)
        elif self._left <= 0:
            self._seconds[1 - self._best].clear()
            self._turn_to(1 - self._best)

    def _settle(self, best: int, pause: int) -> None:
        """Keep this alternative for some steps."""
        self._best = best
        self._turn_to(best)
        self._left = self._pause = min(pause, MOST_PAUSE)
        self._late = 0

    def _turn_to(self, way: int) -> None:
        """Switch to an alternative. The other one's time is assumed to stay the same."""
        self.way = way
        other = self._seconds[1 - way]
        self._usual = statistics.median(other) if other else None


def _compute_with_threads(threads: int, gradients: Callable[[], Tensors]) -> Tensors:
    torch.set_num_threads(threads)
    try:
        return gradients()
    finally:
        torch.set_num_threads(1)


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(one.numpy().tobytes() == other.numpy().tobytes())
