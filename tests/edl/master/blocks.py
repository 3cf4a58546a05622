"""Random schedules in blocks of seeds, of which every run tries the first and `make test-all` all."""

from __future__ import annotations

import pytest


def blocks(number: int, *, always: int) -> pytest.MarkDecorator:
    """Give a test the argument `block`."""
    left = (pytest.param(block, marks=pytest.mark.soak) for block in range(always, number))
    return pytest.mark.parametrize("block", [*range(always), *left])
