"""RealMLP once it is trained: a dense network with the scales of its features and its factors multiplied out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from edl.frameworks.networks.network import FeatureBlock, Floats, Layer, Network, Shape

SCALE_RATE, BIAS_RATE = 6.0, 0.1  # learning rates of scales and biases, as factors of the weights' rate


def network(
    shape: Shape, blocks: tuple[FeatureBlock, ...], scale: Floats, layers: Iterable[tuple[Floats, Floats]]
) -> Network:
    """Return the network.

    scale: the parameters of the features' scales, (width,). layers: parameters of the weights, (inputs, units), and of
    the biases, (units,), the output's last.
    """
    of_features = (1 + SCALE_RATE * scale)[:, np.newaxis]
    stages = [
        Layer(weight * len(weight) ** -0.5, bias * BIAS_RATE, shape.activation) for weight, bias in layers
    ]
    stages[0] = replace(stages[0], weight=of_features * stages[0].weight)
    output = replace(stages.pop(), activation="")
    return Network(blocks, tuple(stages), output, std=shape.std, mean=shape.mean)
