"""Periodic embeddings in both frameworks, against their formula by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl import features as fc
from edl.frameworks.keras import layers as keras_layers
from edl.frameworks.torch import layers as torch_layers

FEATURES = fc.Features(fc.periodic("x", 2.0, 0.5, 3), fc.numeric("x"), fc.periodic("y", -1.0, 4.0, 3))
ROWS: dict[str, list[float | None]] = {"x": [1.0, 2.0, 2.75, 9.0], "y": [0.0, None, -5.0, 3.0]}
Z = np.array([[-2.0, 0.0, 1.5, 14.0], [0.25, 0.0, -1.0, 1.0]])


def in_keras(arrays: dict[str, Any]) -> tuple[Any, list[Any]]:
    inputs = keras_layers.feature_inputs(FEATURES)
    model = keras_layers.keras.Model(inputs, keras_layers.concatenated(FEATURES, inputs))
    return model(arrays).numpy(), [weight.numpy() for weight in model.weights]


def in_torch(arrays: dict[str, Any]) -> tuple[Any, list[Any]]:
    tensors = {name: torch_layers.torch.from_numpy(array) for name, array in arrays.items()}
    module = torch_layers.Concatenated(FEATURES)
    return module(tensors).detach().numpy(), [each.detach().numpy() for each in module.parameters()]


@pytest.mark.parametrize("embedded", [in_keras, in_torch])
def test_a_number_becomes_a_learnt_function_of_its_sines_and_cosines(embedded: Any) -> None:
    found, (frequencies, kernel, bias) = embedded(FEATURES.transform(pa.record_batch(ROWS)))
    assert found.shape == (4, FEATURES.width) == (4, 7)
    np.testing.assert_array_equal(found[:, 0], ROWS["x"])
    for number, z in enumerate(Z):
        angles = 2 * np.pi * z[:, None] * frequencies[number]
        waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
        wanted = np.maximum(waves @ kernel[number] + bias[number], 0)
        assert wanted.any()
        np.testing.assert_allclose(found[:, 1 + 3 * number : 4 + 3 * number], wanted, atol=1e-5)
