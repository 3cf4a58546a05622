"""Clipped gradients: the same in PyTorch as Keras' arguments of the same names."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from edl.torch import clipped

GRADIENTS = (
    np.array([3.0, -4.0], np.float32),
    np.array([[0.3, 0.4]], np.float32),
    np.array([0.0], np.float32),
)


@pytest.mark.parametrize("keyword", ["clipnorm", "global_clipnorm", "clipvalue"])
def test_a_step_equals_keras(keyword: str) -> None:
    import keras

    variables = [keras.Variable(np.ones_like(gradient)) for gradient in GRADIENTS]
    keras.optimizers.SGD(1.0, **{keyword: 0.7}).apply(list(GRADIENTS), variables)
    parameters = [torch.nn.Parameter(torch.ones(gradient.shape)) for gradient in GRADIENTS]
    unused = torch.nn.Parameter(torch.ones(2))
    optimizer = clipped(torch.optim.SGD([*parameters, unused], 1.0), **{keyword: 0.7})
    for parameter, gradient in zip(parameters, GRADIENTS, strict=True):
        parameter.grad = torch.tensor(gradient)
    optimizer.step()
    for variable, parameter in zip(variables, parameters, strict=True):
        np.testing.assert_allclose(parameter.detach().numpy(), variable.numpy(), rtol=1e-5)
    assert unused.tolist() == [1, 1]


def test_gradients_that_are_small_enough_stay() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = clipped(
        torch.optim.SGD([parameter], 1.0), clipnorm=10.0, global_clipnorm=10.0, clipvalue=10.0
    )
    parameter.grad = torch.tensor([3.0, -4.0])
    optimizer.step()
    assert parameter.tolist() == [-2, 5]
