"""How many threads share an operation of PyTorch.

Threads of OpenMP wait for each other at the end of every operation. Those that spin meanwhile take the cores from
whoever else needs them, and beside one busy process a step may take eighty times as long; those that sleep at once
cost a small operation more than they gain. So threads spin for a moment and then sleep (`edl.nn.ENVIRONMENT`), and

* a large model has all of them: its operations take much longer than a moment,
* a small one has one, or a few while that is faster. Which one it is, changes with what else the machine does, and must
  not be seen in the model: a few are only tried where they give all gradients of a step bit for bit. (The order in
  which an operation adds up depends on its shapes and its threads, not on the numbers; what moves a parameter by its
  gradient adds nothing up.)
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence

import torch

_SHARED_WORK = 1e8  # rows x parameters of a call from which on all threads share its operations
_LEAST_WORK = 2e6  # … below which one thread is always faster
_FEW = (4, 2)  # threads that a small model may have

TRIAL = 8  # steps that a trial takes
LEAST_PAUSE, MOST_PAUSE = 64, 16_384  # steps between two trials
LONGER, MUCH_LONGER = 2, 16  # the next pause, after a trial that changed nothing, and after one that was slow
GAIN = 0.97  # of the time of one step, that the other way has to keep below
SLOW = 2.0  # times the time of the other way: something else needs the cores
PATIENCE = 3  # slow steps in a row, until it is given up

Tensors = Sequence[torch.Tensor]


class Threads:
    """Of one model with so many parameters. most: that its operations may have."""

    def __init__(self, most: int, parameters: int) -> None:
        self._most = most
        self._parameters = parameters
        self._turns: dict[int, Turns] = {}

    def take(self, rows: int) -> None:
        """For operations on so many rows: by their size alone, so that the same job computes the same bits."""
        torch.set_num_threads(self._most if self._work(rows) >= _SHARED_WORK else 1)

    def may_vary(self, rows: int) -> bool:
        """Whether steps of so many rows are worth a trial."""
        return self._most > 1 and _LEAST_WORK <= self._work(rows) < _SHARED_WORK

    def turns(self, rows: int, gradients: Callable[[], Tensors]) -> Turns:
        """For steps of so many rows. gradients: of one of them, clipped, which leaves no trace."""
        if rows not in self._turns:
            self._turns[rows] = Turns(rows, self._few(gradients))
        return self._turns[rows]

    def _few(self, gradients: Callable[[], Tensors]) -> int:
        """As many as give the gradients that one gives."""
        alone = _with(1, gradients)
        possible = (threads for threads in _FEW if threads <= self._most)
        same = (each for each in possible if all(map(_same_bits, alone, _with(each, gradients))))
        return next(same, 1)

    def _work(self, rows: int) -> int:
        return rows * self._parameters


class Turns:
    """Gives each step one thread or `few`, whichever is faster by now; one of other than `rows` rows has one."""

    def __init__(self, rows: int, few: int) -> None:
        self.few = few
        self._rows = rows
        self._choice = Choice()
        self._began = 0.0
        self._varies = False

    def begin(self, rows: int) -> None:
        """Before a step."""
        self._varies = rows == self._rows and self.few > 1
        if self._varies:
            torch.set_num_threads(self.few if self._choice.way else 1)
            self._began = time.perf_counter()

    def end(self) -> None:
        """After it."""
        if self._varies:
            self._choice.took(time.perf_counter() - self._began)
            torch.set_num_threads(1)


class Choice:
    """Of two ways to do the same, the faster one: `way`, 0 or 1. Now and then, and ever more rarely, the other one is
    tried. Begins with 0, which is never far slower.
    """

    def __init__(self) -> None:
        self.way = self._best = 0
        self._seconds = deque[float](maxlen=TRIAL), deque[float](maxlen=TRIAL)
        self._usual: float | None = None  # seconds of the way that is not taken; None: it was not tried yet
        self._pause = LEAST_PAUSE
        self._left = TRIAL  # steps until the next trial
        self._late = 0

    def took(self, seconds: float) -> None:
        """Of the step that was taken."""
        self._seconds[self.way].append(seconds)
        slow = self._usual is not None and seconds > SLOW * self._usual
        if self.way != self._best:
            self._try(slow)
        else:
            self._go_on(slow)

    def _try(self, slow: bool) -> None:
        """One more step of a trial."""
        own, other = self._seconds[self.way], self._seconds[1 - self.way]
        if slow:
            self._settle(self._best, self._pause * MUCH_LONGER)
        elif len(own) == TRIAL:
            faster = statistics.median(own) < GAIN * statistics.median(other)
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
        """Stay with this way for a while."""
        self._best = best
        self._turn_to(best)
        self._left = self._pause = min(pause, MOST_PAUSE)
        self._late = 0

    def _turn_to(self, way: int) -> None:
        """Take it. What the other one needed does not change meanwhile."""
        self.way = way
        other = self._seconds[1 - way]
        self._usual = statistics.median(other) if other else None


def _with(threads: int, gradients: Callable[[], Tensors]) -> Tensors:
    torch.set_num_threads(threads)
    try:
        return gradients()
    finally:
        torch.set_num_threads(1)


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(one.numpy().tobytes() == other.numpy().tobytes())
