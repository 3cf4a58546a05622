"""Whole numbers that are names: the label differs by them in no order."""

from __future__ import annotations

import numpy as np
import pytest

from edl.features.arrays import Floats
from sqlflow_edl.analysis.checks.groups import disorder

ROWS = 6000


def of(count: int, label: str, *, noise: float = 1.0) -> float:
    """Disorder of numbers below `count`; label: an expression of their effects."""
    random = np.random.default_rng(1)
    numbers = random.integers(0, count, ROWS)
    effects: dict[str, Floats] = {
        "names": random.normal(size=count)[numbers],
        "line": numbers * 3.0,
        "wave": np.sin(numbers / count * 12) * 3,
        "step": (numbers > count / 3) * 5.0,
        "nothing": np.zeros(ROWS),
    }
    labels = effects[label] + noise * random.normal(size=ROWS)
    return disorder(numbers.astype(np.float64), labels[:, None])


@pytest.mark.parametrize("count", [40, 200, 2000])
def test_names_are_told_from_quantities(count: int) -> None:
    assert of(count, "names") > 0.15
    for label in ("line", "wave", "step", "nothing"):
        assert of(count, label) < 0.01, label
        assert of(count, label, noise=0.0) < 0.01, label


def test_too_few_numbers_or_repeats_tell_nothing() -> None:
    assert of(5, "names", noise=0.1) == 0
    assert disorder(np.arange(100.0), np.random.default_rng(0).normal(size=(100, 1))) == 0


def test_frequent_names_do_not_hide_the_others() -> None:
    random = np.random.default_rng(0)
    numbers = random.zipf(1.5, ROWS) % 3000
    labels = random.normal(size=3000)[numbers] + random.normal(size=ROWS)
    assert disorder(numbers.astype(np.float64), labels[:, None]) > 0.2


def test_the_columns_of_classes_count_together() -> None:
    random = np.random.default_rng(0)
    numbers = random.integers(0, 100, ROWS)
    classes = np.eye(3)[random.integers(0, 3, 100)[numbers]]
    assert disorder(numbers.astype(np.float64), classes) == pytest.approx(1.0, abs=0.3)
