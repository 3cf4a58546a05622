"""Sums over a group. Its members may be at different points of their scripts."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from edl.arrays import Array
from edl.collectives.base import Group
from edl.errors import JobError
from edl.extensions.elastic.collective import BROADCAST, END, EVALUATION, STEP, sum_over_group


class Others:
    """Group of three, in which the two others sum these arrays."""

    size = 3

    def __init__(self, *arrays: Array) -> None:
        self._arrays = arrays

    def sum(self, array: Array) -> None:
        for other in self._arrays:
            array += other[: len(array)]


def test_members_at_one_point_add_up() -> None:
    flat = np.array([0, 1, 2], np.float32)
    sum_over_group(cast(Group, Others(*2 * [np.array([EVALUATION, 1, 1])])), EVALUATION, flat)
    assert flat[1:].tolist() == [3, 4]


@pytest.mark.parametrize("others", [(END, END), (BROADCAST, STEP), (0.0, STEP)])
def test_a_member_at_another_point_is_an_error(others: tuple[float, float]) -> None:
    group = Others(*(np.array([mark, 1.0]) for mark in others))
    with pytest.raises(JobError, match="this worker takes a step, and another one is at another point"):
        sum_over_group(cast(Group, group), STEP, np.zeros(2, np.float32))
