"""Parts of Keras 2 that modules of ElasticDL use and Keras 3 has not.

* Functions of TensorFlow on the symbolic tensors of a functional model: `tf.reshape(inputs, …)`, `K.sum(…)`. Keras 2
  made a layer of such a call by TensorFlow's dispatch of operations, and so does this module.
* `tf.keras.layers.DenseFeatures` over `tf.feature_column`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2 as columns

Tensor = Any
_dispatchers: list[Any] = []


def install() -> None:
    """Add the missing parts to this process. Calls that Keras 3 answers itself stay as they are."""
    imported: Any = sys.modules.get("tensorflow.keras.layers", tf.keras.layers)
    imported.DenseFeatures = tf.keras.layers.DenseFeatures = DenseFeatures  # the two may be two modules
    if _dispatchers:
        return
    tf.get_logger().setLevel("ERROR")  # each feature column warns that it is deprecated
    dispatcher = OperationDispatcher()
    dispatcher.register()
    _dispatchers.append(dispatcher)


class OperationDispatcher(tf.__internal__.dispatch.GlobalOpDispatcher):
    """Receiver of TensorFlow's operations that refuse their arguments: those with symbolic tensors become layers."""

    def handle(self, op: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        flat = tf.nest.flatten((args, kwargs))
        if not any(isinstance(part, keras.KerasTensor) for part in flat):
            return self.NOT_SUPPORTED
        return OperationLayer(op, args, kwargs)()


class OperationLayer(keras.layers.Layer):
    """Layer of one call of an operation; the symbolic tensors among its arguments are the layer's inputs."""

    def __init__(self, operation: Callable[..., Any], args: Any, kwargs: Any) -> None:
        super().__init__(trainable=False)
        self._operation = operation
        self._structure = (tuple(args), dict(kwargs))
        flat = tf.nest.flatten(self._structure)
        self._is_symbolic = [isinstance(part, keras.KerasTensor) for part in flat]
        self._rest = [
            None if symbolic else part for part, symbolic in zip(flat, self._is_symbolic, strict=True)
        ]
        self._symbolic = [part for part, symbolic in zip(flat, self._is_symbolic, strict=True) if symbolic]

    def __call__(self, *tensors: Tensor, **options: Any) -> Tensor:
        """Call the operation: on the symbolic tensors themselves at first, on tensors whenever the model runs."""
        return super().__call__(*(tensors or self._symbolic), **options)

    def compute_output_spec(self, *tensors: Tensor) -> Tensor:
        """Return the result's shape and type. Keras calls `0.5 * dense` sparse: what refuses it gets it as dense."""
        try:
            return super().compute_output_spec(*tensors)
        except (TypeError, ValueError):
            if not any(tensor.sparse for tensor in tensors):
                raise
            return super().compute_output_spec(
                *(keras.KerasTensor(tensor.shape, tensor.dtype) for tensor in tensors)
            )

    def compute_mask(self, *arguments: Any, **options: Any) -> None:
        return None

    def call(self, *tensors: Tensor) -> Tensor:
        following = iter(tensors)
        flat = [
            next(following) if symbolic else part
            for part, symbolic in zip(self._rest, self._is_symbolic, strict=True)
        ]
        args, kwargs = tf.nest.pack_sequence_as(self._structure, flat)
        return self._operation(*args, **kwargs)


class DenseFeatures(keras.layers.Layer):
    """Dense columns of `tf.feature_column` side by side, in the order of their names: float32 (rows, width).

    Inputs are a dict of tensors by the keys of the columns.
    """

    def __init__(
        self, feature_columns: Any, trainable: bool = True, name: str | None = None, **options: Any
    ) -> None:
        super().__init__(trainable=trainable, name=name, **options)
        listed = list(feature_columns) if isinstance(feature_columns, Sequence) else [feature_columns]
        self.feature_columns = sorted(listed, key=lambda column: str(column.name))
        self._state = _ColumnState(self)

    def build(self, input_shape: Any) -> None:
        for column in self.feature_columns:
            column.create_state(self._state)

    def call(self, inputs: Mapping[str, Tensor]) -> Tensor:
        cache = columns.FeatureTransformationCache(dict(inputs))
        parts = []
        for column in self.feature_columns:
            tensor = column.get_dense_tensor(cache, self._state)
            parts.append(tf.reshape(tf.cast(tensor, tf.float32), (-1, column.variable_shape.num_elements())))
        return tf.concat(parts, axis=1)

    def compute_output_shape(self, input_shape: Mapping[str, Any]) -> tuple[int | None, int]:
        rows = next(iter(input_shape.values()))[0]
        return rows, sum(column.variable_shape.num_elements() for column in self.feature_columns)


class _ColumnState(columns.StateManager):
    """Weights of feature columns, which are weights of the layer."""

    def __init__(self, layer: keras.layers.Layer) -> None:
        self._layer = layer
        self._weights: dict[tuple[Any, str], Any] = {}
        self._resources: dict[tuple[Any, str], Any] = {}

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        def initial(shape: Any, dtype: Any = None) -> Tensor:
            return initializer(shape, tf.as_dtype(dtype or "float32"))

        weight = self._layer.add_weight(
            shape=tuple(shape),
            dtype=tf.as_dtype(dtype).name if dtype else "float32",
            initializer=initial if initializer else "glorot_uniform",
            trainable=trainable and self._layer.trainable,
            name=name,
        )
        self._weights[feature_column, name] = weight
        return weight

    def get_variable(self, feature_column: Any, name: str) -> Tensor:
        return self._weights[feature_column, name].value

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        self._resources[feature_column, name] = resource

    def has_resource(self, feature_column: Any, name: str) -> bool:
        return (feature_column, name) in self._resources

    def get_resource(self, feature_column: Any, name: str) -> Any:
        return self._resources[feature_column, name]
