"""Layers of `elasticdl_preprocessing`: functions of the values of dense, sparse and ragged tensors.

They have no weights but `SparseEmbedding`'s table. Shapes stay; ids are int64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

Tensor = Any


def map_values(function: Callable[[Tensor], Tensor], tensor: Tensor) -> Tensor:
    """Return the tensor with `function` applied to its values: all, or the present ones if it is sparse or ragged."""
    if isinstance(tensor, tf.SparseTensor):
        return tf.SparseTensor(tensor.indices, function(tensor.values), tensor.dense_shape)
    return tf.ragged.map_flat_values(function, tensor)


class _ValueLayer(keras.layers.Layer):
    """Layer that computes a value from each value."""

    def call(self, inputs: Tensor) -> Tensor:
        return map_values(self.compute, inputs)

    def compute(self, values: Tensor) -> Tensor:
        """Return the result for some values, in their shape."""
        raise NotImplementedError


class Normalizer(_ValueLayer):
    """(x - subtractor) / divisor, float32."""

    def __init__(self, subtractor: float, divisor: float, **options: Any) -> None:
        super().__init__(**options)
        if divisor == 0:
            raise ValueError("the divisor of a Normalizer is 0")
        self.subtractor, self.divisor = subtractor, divisor

    def compute(self, values: Tensor) -> Tensor:
        return (tf.cast(values, tf.float32) - self.subtractor) / self.divisor

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "subtractor": self.subtractor, "divisor": self.divisor}


class Discretization(_ValueLayer):
    """Number of the interval of a number: [bins[i - 1], bins[i]) has the number i."""

    def __init__(self, bins: Sequence[float], **options: Any) -> None:
        super().__init__(**options)
        self.bins = list(bins)

    def num_bins(self) -> int:
        return len(self.bins) + 1

    def compute(self, values: Tensor) -> Tensor:
        boundaries = [float(boundary) for boundary in self.bins]
        return tf.cast(tf.raw_ops.Bucketize(input=values, boundaries=boundaries), tf.int64)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "bins": self.bins}


class Hashing(_ValueLayer):
    """Bucket of a text or an integer by TensorFlow's fast hash, in [0, num_bins)."""

    def __init__(self, num_bins: int, **options: Any) -> None:
        super().__init__(**options)
        if not num_bins or num_bins < 1:
            raise ValueError("num_bins of a Hashing layer must be positive")
        self.num_bins = num_bins

    def compute(self, values: Tensor) -> Tensor:
        texts = values if values.dtype == tf.string else tf.as_string(values)
        return tf.strings.to_hash_bucket_fast(texts, self.num_bins)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_bins": self.num_bins}


class IndexLookup(_ValueLayer):
    """Position of a text in the vocabulary, a list or a file of a term a line; others share the last positions."""

    def __init__(self, vocabulary: Sequence[str] | str, num_oov_tokens: int = 1, **options: Any) -> None:
        super().__init__(**options)
        if isinstance(vocabulary, str):
            vocabulary = [line.strip() for line in Path(vocabulary).read_text("utf-8").splitlines()]
        self.vocabulary = list(vocabulary)
        self.num_oov_tokens = num_oov_tokens
        if len(set(self.vocabulary)) < len(self.vocabulary):
            raise ValueError("the vocabulary of an IndexLookup has a term twice")
        with tf.init_scope():
            positions = tf.range(len(self.vocabulary), dtype=tf.int64)
            terms = tf.lookup.KeyValueTensorInitializer(tf.constant(self.vocabulary), positions)
            self._table = (
                tf.lookup.StaticVocabularyTable(terms, num_oov_tokens)
                if num_oov_tokens
                else tf.lookup.StaticHashTable(terms, -1)
            )

    def vocab_size(self) -> int:
        return len(self.vocabulary) + self.num_oov_tokens

    def compute(self, values: Tensor) -> Tensor:
        return self._table.lookup(values)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary": self.vocabulary,
            "num_oov_tokens": self.num_oov_tokens,
        }


class RoundIdentity(_ValueLayer):
    """Nearest integer; `default_value` outside of [0, num_buckets)."""

    def __init__(self, num_buckets: int, default_value: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.num_buckets, self.default_value = num_buckets, default_value

    def compute(self, values: Tensor) -> Tensor:
        return keep_ids(tf.round(tf.cast(values, tf.float64)), self.num_buckets, self.default_value)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_buckets": self.num_buckets,
            "default_value": self.default_value,
        }


class LogRound(_ValueLayer):
    """Rounded logarithm to `base`, natural if None; `default_value` outside of [0, num_bins)."""

    def __init__(
        self, num_bins: int, default_value: int = 0, base: float | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.num_bins, self.default_value, self.base = num_bins, default_value, base

    def compute(self, values: Tensor) -> Tensor:
        logs = tf.math.log(tf.cast(values, tf.float64))
        if self.base is not None:
            logs = logs / math.log(self.base)
        return keep_ids(tf.round(logs), self.num_bins, self.default_value)

    def get_config(self) -> dict[str, Any]:
        config = {"num_bins": self.num_bins, "default_value": self.default_value, "base": self.base}
        return {**super().get_config(), **config}


def keep_ids(numbers: Tensor, size: int, otherwise: int) -> Tensor:
    """Return whole numbers as int64 ids; those that are not in [0, size) are `otherwise`."""
    inside = tf.logical_and(numbers >= 0, numbers < size)  # False for NaN
    return tf.where(inside, tf.cast(tf.where(inside, numbers, tf.zeros_like(numbers)), tf.int64), otherwise)


class ToNumber(_ValueLayer):
    """Number of a text, `default_value` of an empty one; other values are cast."""

    def __init__(self, out_type: Any, default_value: float, **options: Any) -> None:
        super().__init__(**options)
        self.out_type, self.default_value = tf.as_dtype(out_type), default_value

    def compute(self, values: Tensor) -> Tensor:
        if values.dtype != tf.string:
            return tf.cast(values, self.out_type)
        filled = tf.where(tf.equal(values, ""), str(self.default_value), values)
        parsed = tf.float64 if self.out_type.is_floating else tf.int64
        return tf.cast(tf.strings.to_number(filled, parsed), self.out_type)

    def get_config(self) -> dict[str, Any]:
        config = {"out_type": self.out_type.name, "default_value": self.default_value}
        return {**super().get_config(), **config}


class ToSparse(keras.layers.Layer):
    """Sparse tensor without the values that equal `ignore_value`: by default empty texts, -1 and 0.0."""

    def __init__(self, ignore_value: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.ignore_value = ignore_value

    def call(self, inputs: Tensor) -> Tensor:
        if isinstance(inputs, tf.SparseTensor):
            return inputs
        ignored = self.ignore_value
        if ignored is None:
            ignored = "" if inputs.dtype == tf.string else -1 if inputs.dtype.is_integer else 0.0
        places = tf.where(tf.not_equal(inputs, tf.cast(ignored, inputs.dtype)))
        return tf.SparseTensor(places, tf.gather_nd(inputs, places), tf.shape(inputs, out_type=tf.int64))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "ignore_value": self.ignore_value}


class ToRagged(keras.layers.Layer):
    """Ragged tensor without the values that equal `ignore_value`; texts are split at `sep`."""

    def __init__(self, sep: str = ",", ignore_value: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.sep, self.ignore_value = sep, ignore_value

    def call(self, inputs: Tensor) -> Tensor:
        ragged = inputs
        if isinstance(inputs, tf.Tensor):
            if inputs.dtype == tf.string and inputs.shape.rank == 2 and inputs.shape[1] == 1:
                ragged = tf.strings.split(tf.squeeze(inputs, 1), self.sep)
            else:
                ragged = tf.RaggedTensor.from_tensor(inputs)
        ignored = self.ignore_value
        if ignored is None:
            if ragged.dtype.is_floating:
                return ragged
            ignored = "" if ragged.dtype == tf.string else -1
        return tf.ragged.boolean_mask(ragged, tf.not_equal(ragged, tf.cast(ignored, ragged.dtype)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "sep": self.sep, "ignore_value": self.ignore_value}


class ConcatenateWithOffset(keras.layers.Layer):
    """Tensors of ids one after another, each with an offset of its own added; None adds nothing."""

    def __init__(self, offsets: Sequence[int] | None, axis: int = -1, **options: Any) -> None:
        super().__init__(**options)
        self.offsets, self.axis = offsets, axis

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        tensors = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        offsets = self.offsets or [0] * len(tensors)
        if len(offsets) != len(tensors):
            raise ValueError(f"ConcatenateWithOffset has {len(offsets)} offsets for {len(tensors)} tensors")
        moved = [_add(offset, tensor) for tensor, offset in zip(tensors, offsets, strict=True)]
        if isinstance(moved[0], tf.SparseTensor):
            return tf.sparse.concat(self.axis, moved)
        return tf.concat(moved, self.axis)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "offsets": self.offsets, "axis": self.axis}


def _add(offset: int, tensor: Tensor) -> Tensor:
    return map_values(lambda values: values + tf.cast(offset, values.dtype), tensor)


class SparseEmbedding(keras.layers.Layer):
    """Combined vectors of the ids of a sparse tensor, (rows, output_dim); zeros of a row without ids."""

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        combiner: str = "mean",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if combiner not in ("sum", "mean", "sqrtn"):
            raise ValueError(f"combiner of a SparseEmbedding is sum, mean or sqrtn, not {combiner!r}")
        self.input_dim, self.output_dim, self.combiner = input_dim, output_dim, combiner
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            shape=(self.input_dim, self.output_dim),
            initializer=self.embeddings_initializer,
            name="embeddings",
        )

    def call(self, inputs: Tensor) -> Tensor:
        if not isinstance(inputs, tf.SparseTensor):
            inputs = ToSparse(0)(inputs)
        ids = map_values(lambda values: tf.cast(values, tf.int64), inputs)
        table = tf.convert_to_tensor(self.embeddings)
        return tf.nn.safe_embedding_lookup_sparse(table, ids, combiner=self.combiner)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, int]:
        return (input_shape[0], self.output_dim)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "combiner": self.combiner,
        }
