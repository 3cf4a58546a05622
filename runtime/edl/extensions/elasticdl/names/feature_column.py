"""Feature columns of ElasticDL: columns of TensorFlow, and categorical columns with ids one after another."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2 as columns

feature_column = sys.modules[
    __name__
]  # of `from elasticdl.python.elasticdl.feature_column import feature_column`


def embedding_column(
    categorical_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> Any:
    """Return TensorFlow's column of the vectors of a categorical column."""
    return tf.feature_column.embedding_column(
        categorical_column,
        dimension,
        combiner,
        initializer,
        max_norm=max_norm,
        trainable=trainable,
    )


def concatenated_categorical_column(categorical_columns: Sequence[Any]) -> Any:
    """Return one categorical column of the ids of several, each with its ids after the ids of the ones before."""
    if not categorical_columns:
        raise ValueError("concatenated_categorical_column needs a categorical column")
    return ConcatenatedColumn(tuple(categorical_columns))


class ConcatenatedColumn(columns.CategoricalColumn):
    """Categorical column of the ids of several columns."""

    def __init__(self, categorical_columns: tuple[Any, ...]) -> None:
        self.categorical_columns = categorical_columns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConcatenatedColumn) and other.categorical_columns == self.categorical_columns

    def __hash__(self) -> int:
        return hash(self.categorical_columns)

    @property
    def _is_v2_column(self) -> bool:
        return True

    @property
    def name(self) -> str:
        return "_and_".join(sorted(column.name for column in self.categorical_columns))

    @property
    def num_buckets(self) -> int:
        return sum(column.num_buckets for column in self.categorical_columns)

    @property
    def parents(self) -> list[Any]:
        return list(self.categorical_columns)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        specs: dict[str, Any] = {}
        for column in self.categorical_columns:
            specs |= column.parse_example_spec
        return specs

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        sizes = [column.num_buckets for column in self.categorical_columns]
        parts = []
        for column, first in zip(self.categorical_columns, itertools.accumulate([0, *sizes]), strict=False):
            ids = column.get_sparse_tensors(transformation_cache, state_manager).id_tensor
            values = tf.cast(ids.values, tf.int64) + first
            parts.append(tf.SparseTensor(ids.indices, values, ids.dense_shape))
        return tf.sparse.concat(-1, parts)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        ids = transformation_cache.get(self, state_manager)
        return columns.CategoricalColumn.IdWeightPair(ids, None)

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError("a model with concatenated columns is exported as a SavedModel only")

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        raise NotImplementedError("a model with concatenated columns is exported as a SavedModel only")
