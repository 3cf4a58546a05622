"""Outputs of a model as one array, for models with several outputs or with outputs of other ranks.

The runtime trains models with one output (rows, columns). `PackedModel` puts the outputs of a module's model side by
side; loss, metrics and predictions get them back as the module's functions expect them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import numpy as np
import pyarrow as pa
import tensorflow as tf

from edl.arrays import Array
from edl.errors import JobError
from edl.features.labels import RawTarget
from edl.spec import RawLabel

Tensor = Any
OUTPUT = "output"  # name of the output of a model with one


class OutputPart(NamedTuple):
    """Output of a model: its name, its first column among all, and the shape of a row."""

    name: str
    first: int
    shape: tuple[int, ...]

    @property
    def width(self) -> int:
        return math.prod(self.shape)


class OutputLayout:
    """Order of a model's outputs, known once the model was called."""

    def __init__(self) -> None:
        self.parts: tuple[OutputPart, ...] = ()
        self._kind: type = dict

    @property
    def is_single(self) -> bool:
        return len(self.parts) == 1 and self.parts[0].name == OUTPUT

    def pack(self, outputs: Any) -> Tensor:
        """Return the outputs side by side, float32 (rows, columns), and note their order."""
        named = _name_outputs(outputs)
        parts, first = [], 0
        for name, tensor in named.items():
            shape = tuple(tensor.shape[1:])
            if None in shape:
                raise JobError(f"the output {name} of the model has rows of an unknown shape {shape}")
            parts.append(OutputPart(name, first, shape))
            first += parts[-1].width
        self.parts, self._kind = tuple(parts), type(outputs)
        flat = [tf.reshape(tf.cast(named[part.name], tf.float32), (-1, part.width)) for part in self.parts]
        return flat[0] if len(flat) == 1 else tf.concat(flat, axis=1)

    def unpack(self, packed: Any) -> Any:
        """Return what the model gave, of tensors or arrays: a tensor, a dict of them, or a list."""
        parts = {part.name: self.take(packed, part) for part in self.parts}
        if self.is_single:
            return parts[OUTPUT]
        return parts if issubclass(self._kind, Mapping) else list(parts.values())

    def take(self, packed: Any, part: OutputPart) -> Any:
        """Return one output."""
        columns = packed[:, part.first : part.first + part.width]
        reshape = np.reshape if isinstance(packed, np.ndarray) else tf.reshape
        return reshape(columns, (-1, *part.shape))


def _name_outputs(outputs: Any) -> dict[str, Tensor]:
    if isinstance(outputs, Mapping):
        return dict(outputs)
    if isinstance(outputs, list | tuple):
        return {f"{OUTPUT}_{number}": tensor for number, tensor in enumerate(outputs)}
    return {OUTPUT: outputs}


class OutputsTarget(RawTarget):
    """Predictions of a model with several outputs: a struct with a field for each. Of one output they are as ever."""

    def __init__(self, layout: OutputLayout, column: str) -> None:
        super().__init__(RawLabel(column))
        self._layout = layout

    def decode(self, scores: Array) -> pa.Array:
        if self._layout.is_single or not self._layout.parts:
            return super().decode(scores)
        parts = self._layout.parts
        columns = [super(OutputsTarget, self).decode(self._layout.take(scores, part)) for part in parts]
        return pa.StructArray.from_arrays(columns, names=[part.name for part in parts])


class PackedModel(keras.Model):
    """Model of a module, with its outputs side by side."""

    def __init__(self, model: keras.Model, layout: OutputLayout) -> None:
        super().__init__()
        self.model = model
        self._layout = layout

    @property
    def inner(self) -> keras.Model:
        """Model of the module itself, which an export writes."""
        model: keras.Model = self.model
        return model

    def replace_inner(self, model: keras.Model) -> PackedModel:
        """Return the same around another model."""
        return PackedModel(model, self._layout)

    def call(self, inputs: Any, training: bool = False) -> Tensor:
        of_graph = getattr(self.model, "inputs", None) or ()
        if isinstance(inputs, dict) and len(inputs) == len(of_graph) == 1:
            inputs = next(iter(inputs.values()))  # modules name an input otherwise than its feature
        return self._layout.pack(self.model(inputs, training=training))
