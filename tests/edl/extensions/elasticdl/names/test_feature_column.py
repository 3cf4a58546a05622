"""Categorical columns whose ids follow one another."""

from __future__ import annotations

import pytest
import tensorflow as tf

from edl.extensions.elasticdl.keras2 import DenseFeatures
from edl.extensions.elasticdl.names.feature_column import concatenated_categorical_column, embedding_column

JOBS = tf.feature_column.categorical_column_with_vocabulary_list("job", ["cook", "smith"])
SIZES = tf.feature_column.categorical_column_with_identity("size", num_buckets=4)


def test_ids_of_the_second_column_begin_after_the_first_ones() -> None:
    column = concatenated_categorical_column([JOBS, SIZES])
    assert (column.num_buckets, column.name) == (6, "job_and_size")
    layer = DenseFeatures([tf.feature_column.indicator_column(column)])
    rows = layer({"job": tf.constant([["smith"], ["cook"]]), "size": tf.constant([[0], [3]])})
    assert rows.numpy().tolist() == [[0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1]]


def test_an_embedding_of_such_columns_has_a_row_for_each_id() -> None:
    layer = DenseFeatures(
        [embedding_column(concatenated_categorical_column([JOBS, SIZES]), 2, combiner="sum")]
    )
    layer({"job": tf.constant([["smith"]]), "size": tf.constant([[0]])})
    assert layer.trainable_weights[0].shape == (6, 2)
    with pytest.raises(ValueError, match="needs a categorical column"):
        concatenated_categorical_column([])
