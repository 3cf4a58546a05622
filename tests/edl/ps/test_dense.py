"""Whole parameters, flat, moved as the framework's own optimizer moves them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from edl.embeddings import Optimizer
from edl.ps.dense import FlatParameters
from tests.edl.embeddings.reference_optimizers import (
    BETAS,
    KERAS,
    TORCH,
    of_torch,
    stepped_by_keras,
    stepped_by_torch,
)
from tests.edl.ps.servers import ADAM, SGD

STEPS, SIZE, RATE = 30, 40, 0.03
DEFAULTS = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "amsgrad": False}

# PyTorch's Adam on whole parameters is another one than on rows.
WHOLE: dict[str, tuple[Any, dict[str, Any], Optimizer]] = {
    "adam": (torch.optim.Adam, {}, Optimizer("torch", "adam", DEFAULTS)),
    "adam, epsilon": (
        torch.optim.Adam,
        {"betas": (0.8, 0.95), "eps": 1e-3},
        Optimizer("torch", "adam", {**BETAS, "epsilon": 1e-3, "amsgrad": False}),
    ),
    "adam, l2": (
        torch.optim.Adam,
        {"eps": 1e-3, "weight_decay": 0.1},
        Optimizer("torch", "adam", {**DEFAULTS, "epsilon": 1e-3, "weight_decay": 0.1}),
    ),
    "adamw": (
        torch.optim.AdamW,
        {"eps": 1e-3, "weight_decay": 0.1},
        Optimizer("torch", "adamw", {**DEFAULTS, "epsilon": 1e-3, "weight_decay": 0.1}),
    ),
}


def start() -> np.ndarray:
    return np.random.default_rng(1).normal(size=SIZE).astype(np.float32)


def gradients() -> Iterator[np.ndarray]:
    rng = np.random.default_rng(2)
    return (rng.normal(size=SIZE).astype(np.float32) for _ in range(STEPS))


def moved(optimizer: Optimizer) -> np.ndarray:
    parameters = FlatParameters(start(), optimizer)
    for gradient in gradients():
        gradient.flags.writeable = False
        parameters.update(gradient, RATE)
    return parameters.read()


@pytest.mark.variants(4)
@pytest.mark.parametrize("case", TORCH)
def test_steps_equal_torch(case: str) -> None:
    expected = stepped_by_torch(case, start(), gradients(), RATE)
    np.testing.assert_allclose(moved(of_torch(case)), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", WHOLE)
def test_steps_equal_torch_where_rows_differ(case: str) -> None:
    kind, arguments, optimizer = WHOLE[case]
    parameter = torch.nn.Parameter(torch.from_numpy(start()))
    stepping = kind([parameter], lr=RATE, **arguments)
    for gradient in gradients():
        parameter.grad = torch.from_numpy(gradient)
        stepping.step()
    np.testing.assert_allclose(moved(optimizer), parameter.detach().numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.soak
@pytest.mark.parametrize("case", KERAS)
def test_steps_equal_keras(case: str) -> None:
    expected, optimizer = stepped_by_keras(case, start(), gradients(), RATE)
    np.testing.assert_allclose(moved(optimizer), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("optimizer", [SGD, ADAM])
def test_a_copy_goes_on_as_the_parameters_would_have(optimizer: Optimizer) -> None:
    one, other = FlatParameters(start(), optimizer), FlatParameters(np.zeros(SIZE, np.float32), optimizer)
    gradient = next(gradients())
    one.update(gradient, RATE)
    copied = one.copy(one.room())
    before = copied.data.copy()
    one.update(gradient, RATE)
    np.testing.assert_array_equal(copied.data, before)
    other.adopt(copied)
    other.update(gradient, RATE)
    np.testing.assert_array_equal(one.read(), other.read())


def test_parameters_of_another_size_are_not_taken() -> None:
    with pytest.raises(ValueError, match="the flat parameters"):
        FlatParameters(start(), SGD).adopt(FlatParameters(start(), ADAM).room())


def test_a_server_without_parameters_takes_no_step_and_fails_at_none() -> None:
    parameters = FlatParameters(np.empty(0, np.float32), ADAM)
    parameters.update(np.empty(0, np.float32), RATE)
    assert parameters.read().shape == (0,)
