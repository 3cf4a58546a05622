"""Layers of RealMLP (Holzmüller, Grinsztajn and Steinwart, 2024) in Keras, for generated programs.

They match the layers of `edl.frameworks.torch.real_mlp`, which gives the reasons.
"""

from __future__ import annotations

from typing import Any

import keras

from edl.frameworks.networks.real_mlp import BIAS_RATE, SCALE_RATE


@keras.saving.register_keras_serializable(package="edl")
class FeatureScales(keras.layers.Layer):
    """A learned factor for each feature, at first 1: (rows, width) to (rows, width)."""

    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight(shape=(input_shape[-1],), initializer="zeros", name="scale")

    def call(self, inputs: Any) -> Any:
        return inputs * (1 + SCALE_RATE * self.scale)


@keras.saving.register_keras_serializable(package="edl")
class NTPDense(keras.layers.Layer):
    """A dense layer in the neural tangent parametrization: (rows, inputs) to (rows, units)."""

    def __init__(self, units: int, **options: Any) -> None:
        super().__init__(**options)
        self.units = units

    def build(self, input_shape: Any) -> None:
        normal, biases = (keras.initializers.RandomNormal(0.0, std) for std in (1.0, 1.0 / BIAS_RATE))
        self.factor = input_shape[-1] ** -0.5
        self.kernel = self.add_weight(shape=(input_shape[-1], self.units), initializer=normal, name="kernel")
        self.bias = self.add_weight(shape=(self.units,), initializer=biases, name="bias")

    def call(self, inputs: Any) -> Any:
        return keras.ops.matmul(inputs, self.factor * self.kernel) + BIAS_RATE * self.bias

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}
