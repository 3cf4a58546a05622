"""The piecewise-linear encoding in both frameworks, against its formula by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl import features as fc
from edl.frameworks.keras import layers as keras_layers
from edl.frameworks.torch import layers as torch_layers

X, Y = (-1.0, 3.0, 4.0, 9.0), (0.0, 0.5, 2.0)
FEATURES = fc.Features(fc.piecewise_linear("x", X), fc.numeric("x"), fc.piecewise_linear("y", Y, nulls=True))
ROWS: dict[str, list[float | None]] = {
    "x": [-7.0, -1.0, 0.0, 3.25, 4.0, 8.0, 20.0],
    "y": [0.0, None, 0.25, 0.5, None, 1.0, 3.0],
}


def by_hand(value: float | None, boundaries: tuple[float, ...]) -> list[float]:
    """Equation 1 of Gorishniy et al. (2022), without extrapolation; a missing value is zeros."""
    if value is None:
        return [0.0] * (len(boundaries) - 1)
    bins = itertools.pairwise(boundaries)
    return [min(max((value - low) / (high - low), 0.0), 1.0) for low, high in bins]


EXPECTED = [
    [x, *by_hand(x, X), float(y is not None), *by_hand(y, Y)]
    for x, y in zip(ROWS["x"], ROWS["y"], strict=True)
]


def in_keras(arrays: dict[str, Any]) -> Any:
    inputs = keras_layers.feature_inputs(FEATURES)
    return keras_layers.keras.Model(inputs, keras_layers.concatenated(FEATURES, inputs))(arrays).numpy()


def in_torch(arrays: dict[str, Any]) -> Any:
    tensors = {name: torch_layers.torch.from_numpy(array) for name, array in arrays.items()}
    return torch_layers.Concatenated(FEATURES)(tensors).numpy()


@pytest.mark.parametrize("encoded", [in_keras, in_torch])
def test_a_number_becomes_the_part_of_each_bin_below_it(encoded: Any) -> None:
    found = encoded(FEATURES.transform(pa.record_batch(ROWS)))
    assert found.shape == (7, FEATURES.width)
    np.testing.assert_allclose(found, EXPECTED, atol=1e-6)
