"""Optimizer step on rows that lie in memory with their slots."""

from __future__ import annotations

from typing import Any

import numpy as np

from edl.embeddings.optimizers import Optimizer, rule

Array = Any


class RowUpdater:
    """Update of rows by the optimizer's rule. `whole` means that rows are whole parameters. `slots` has the initial
    value of each slot.

    Raises JobError if the optimizer has no rule.
    """

    def __init__(self, optimizer: Optimizer, *, whole: bool = False) -> None:
        from edl.embeddings import optimizer_kernels  # imports numba

        self._steps = optimizer_kernels
        self._rule = rule(optimizer, whole=whole)
        self.slots = self._rule.slots

    def move(self, data: Array, dim: int, numbers: Array, gradients: Array, rate: float, step: int) -> None:
        """Update the distinct rows of these numbers by their gradients, float32 (n, dim). `step` counts from 1.

        `data` is float32 (rows, dim x (1 + slots)).
        """
        moves = self._rule
        if moves.decay:
            self._steps.decay(data, dim, numbers, np.float32(1 - rate * moves.decay))
        if moves.penalty:
            gradients = gradients.copy()  # don't modify the caller's array
            self._steps.penalty(data, dim, numbers, gradients, np.float32(moves.penalty))
        constants = np.array(moves.constants(rate, step), np.float32)
        getattr(self._steps, moves.kernel)(data, dim, numbers, gradients, constants)
