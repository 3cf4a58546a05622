"""Layers of RealMLP (Holzmüller, Grinsztajn and Steinwart, 2024) in PyTorch, for generated programs.

The paper trains scales and biases with other learning rates than weights. Adam's steps do not depend on the size of a
gradient, so a parameter that is multiplied by a factor moves as with a learning rate so many times as high.
"""

from __future__ import annotations

import torch
from torch import nn

from edl.frameworks.networks.real_mlp import BIAS_RATE, SCALE_RATE


class FeatureScales(nn.Module):
    """A learned factor for each feature, at first 1: (rows, width) to (rows, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(width))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden * (1 + SCALE_RATE * self.scale)


class NTPLinear(nn.Module):
    """A linear layer in the neural tangent parametrization: (rows, inputs) to (rows, outputs).

    Weights are drawn from N(0, 1) and divided by the root of `inputs` in use; biases are drawn from N(0, 1).
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs))
        self.bias = nn.Parameter(torch.randn(outputs) / BIAS_RATE)
        self.factor = inputs**-0.5

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(hidden, self.factor * self.weight, BIAS_RATE * self.bias)
