"""One step of an optimizer on rows that lie in memory with their slots."""

from __future__ import annotations

from typing import Any

import numpy as np

from edl.nn.rows.rules import Optimizer, rule

Array = Any


class Mover:
    """Moves rows by the optimizer's rule; whole: rows that are whole parameters. slots: first value of each.

    JobError: the optimizer has no rule.
    """

    def __init__(self, optimizer: Optimizer, *, whole: bool = False) -> None:
        from edl.nn.rows import steps  # numba is imported here

        self._steps = steps
        self._rule = rule(optimizer, whole=whole)
        self.slots = self._rule.slots

    def move(self, data: Array, dim: int, numbers: Array, gradients: Array, rate: float, step: int) -> None:
        """Move the rows of these numbers, distinct, by their gradients, float32 (n, dim). step: counted from 1.

        data: float32 (rows, dim x (1 + slots)).
        """
        moves = self._rule
        if moves.decay:
            self._steps.decay(data, dim, numbers, np.float32(1 - rate * moves.decay))
        if moves.penalty:
            gradients = gradients.copy()  # the caller's stay as they are
            self._steps.penalty(data, dim, numbers, gradients, np.float32(moves.penalty))
        constants = np.array(moves.constants(rate, step), np.float32)
        getattr(self._steps, moves.kernel)(data, dim, numbers, gradients, constants)
