"""Learning rate of each step, for programs that define it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edl.errors import JobError
from edl.frameworks.adapter import Floats
from edl.program import Program

Rates = Callable[[int, int], Floats]  # (first step, from 0; number of steps) -> float32 (steps,)


def program_rates(program: Program) -> Rates | None:
    """Return the rates of the program's `learning_rate(steps)`, or None if it has no such function.

    They are passed to the adapter with the minibatches, so a rate depends on the number of its step alone, not on the
    number of steps per call.
    """
    if not program.has("learning_rate"):
        return None

    def rates(first: int, count: int) -> Floats:
        value = program.call("learning_rate", np.arange(first, first + count))
        return _check_rates(value, first, count, program)

    return rates


def _check_rates(value: object, first: int, count: int, program: Program) -> Floats:
    where = f"learning_rate in {program.file}"
    if not isinstance(value, np.ndarray) or value.shape != (count,) or value.dtype.kind not in "fiu":
        shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
        raise JobError(
            f"{where} gives a {type(value).__name__}{shape} for {count} steps; it must give a rate for each",
            hint="steps is an array; compute with NumPy, as the functions of edl.schedules do",
        )
    rates = value.astype(np.float32)
    unusable = ~(np.isfinite(rates) & (rates >= 0))
    if unusable.any():
        step = int(np.argmax(unusable))
        raise JobError(f"{where} gives {value[step]} for step {first + step}; a rate is a number from 0")
    return rates
