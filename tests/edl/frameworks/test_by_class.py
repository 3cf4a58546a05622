"""Weights of classes in a program's loss, in both frameworks."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

CLASSES = np.array([2, 0, 1, 2])
TWO = np.array([[1], [0], [0], [1]], np.float32)


def arrays(framework: str) -> tuple[Any, Any]:
    """`by_class` of the framework, and what makes its tensors."""
    module = importlib.import_module(f"edl.{framework}")
    if framework == "torch":
        return module.by_class, importlib.import_module("torch").tensor
    return module.by_class, importlib.import_module("keras").ops.convert_to_tensor


@pytest.mark.parametrize("framework", ["keras", "torch"])
def test_each_row_has_the_weight_of_its_class(framework: str) -> None:
    by_class, tensor = arrays(framework)
    assert by_class(tensor(CLASSES), [0.5, 1.0, 4.0]).numpy().tolist() == [4, 0.5, 1, 4]


@pytest.mark.parametrize(("framework", "shape"), [("keras", (4,)), ("torch", (4, 1))])
def test_of_two_classes_the_weights_stand_as_the_losses_do(framework: str, shape: tuple[int, ...]) -> None:
    by_class, tensor = arrays(framework)
    found = by_class(tensor(TWO), [0.5, 3.0]).numpy()
    assert found.shape == shape
    assert found.dtype == np.float32
    assert found.reshape(-1).tolist() == [3, 0.5, 0.5, 3]
