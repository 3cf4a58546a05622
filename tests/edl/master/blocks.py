"""Random schedules in blocks of seeds, of which every run tries the first and `make test-all` all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

SIZE = 20  # seeds of a block

T = TypeVar("T")


def blocks(number: int, *, always: int) -> pytest.MarkDecorator:
    """Give a test the argument `block`."""
    left = (pytest.param(block, marks=pytest.mark.soak) for block in range(always, number))
    return pytest.mark.parametrize("block", [*range(always), *left])


def drawn(kind: str, check: Callable[[int], T], block: int = 0) -> list[T]:
    """Check the schedules of a block; an error names the command that repeats the schedule."""
    return [one(kind, check, seed) for seed in range(SIZE * block, SIZE * block + SIZE)]


def one(kind: str, check: Callable[[int], T], seed: int) -> T:
    try:
        return check(seed)
    except Exception as error:
        error.add_note(f"to repeat it: python -m tests.schedules {kind} --seed {seed}")
        raise
