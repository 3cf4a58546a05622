"""Layers of `elasticdl_preprocessing`: their values on dense, sparse and ragged tensors, and in a graph of layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from edl.extensions.elasticdl.names import preprocessing as layers

CASES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "normalizer": (layers.Normalizer(1.0, 2.0), [3.0, 5.0], [1.0, 2.0]),
    "discretization": (layers.Discretization([0.0, 1.0, 2.0]), [-1.0, 0.0, 1.5, 2.0], [0, 1, 2, 3]),
    "round": (layers.RoundIdentity(5), [1.2, 1.6, 4.9, -3.0], [1, 2, 0, 0]),
    "log": (layers.LogRound(16, base=2), [1.2, 1.6, 0.2, 3.1, 100.0], [0, 1, 0, 2, 7]),
    "lookup": (layers.IndexLookup(["A", "B"]), ["B", "A", "C"], [1, 0, 2]),
    "lookup without others": (layers.IndexLookup(["A", "B"], 0), ["B", "C"], [1, -1]),
    "number": (layers.ToNumber(tf.float32, 7), ["1.5", "", "2"], [1.5, 7.0, 2.0]),
    "whole number": (layers.ToNumber(tf.int32, -1), ["3", ""], [3, -1]),
}


@pytest.mark.parametrize(("layer", "values", "expected"), CASES.values(), ids=CASES)
def test_values_are_mapped_wherever_they_are(layer: Any, values: list[Any], expected: list[Any]) -> None:
    dense = tf.constant([values])
    places = [[0, place] for place in range(len(values))]
    assert layer(dense).numpy().tolist() == [expected]
    assert layer(tf.SparseTensor(places, values, (1, 9))).values.numpy().tolist() == expected
    assert layer(tf.RaggedTensor.from_row_lengths(values, [len(values)])).to_list() == [expected]


def test_the_same_texts_and_numbers_have_the_same_bucket() -> None:
    layer = layers.Hashing(7)
    texts, numbers = layer(tf.constant([["12", "x"]])), layer(tf.constant([[12]]))
    assert texts[0, 0] == numbers[0, 0]
    assert texts[0, 1] == tf.strings.to_hash_bucket_fast("x", 7)
    with pytest.raises(ValueError, match="must be positive"):
        layers.Hashing(0)


def test_a_vocabulary_may_be_a_file_and_has_no_term_twice(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("dog\ncat\n")
    layer = layers.IndexLookup(str(tmp_path / "words"))
    assert (layer(tf.constant(["cat"])).numpy().tolist(), layer.vocab_size()) == ([1], 3)
    with pytest.raises(ValueError, match="a term twice"):
        layers.IndexLookup(["a", "a"])


def test_values_to_ignore_leave_sparse_and_ragged_tensors() -> None:
    sparse = layers.ToSparse()(tf.constant([["a", ""], ["b", "c"]]))
    assert sparse.indices.numpy().tolist() == [[0, 0], [1, 0], [1, 1]]
    assert layers.ToSparse(3)(tf.constant([[3, 4]])).values.numpy().tolist() == [4]
    assert layers.ToRagged()(tf.constant([["1,2"], [""]])).to_list() == [[b"1", b"2"], []]
    assert layers.ToRagged()(tf.constant([[1, -1], [-1, 4]])).to_list() == [[1], [4]]
    assert layers.ToRagged()(tf.constant([[0.5]])).to_list() == [[0.5]]


def test_ids_follow_one_another_by_their_offsets() -> None:
    first, second = tf.constant([[1], [2]]), tf.constant([[1], [2]])
    assert layers.ConcatenateWithOffset([0, 10])([first, second]).numpy().tolist() == [[1, 11], [2, 12]]
    assert layers.ConcatenateWithOffset(None)([first, second]).numpy().tolist() == [[1, 1], [2, 2]]
    sparse = tf.sparse.from_dense(second)
    joined = layers.ConcatenateWithOffset([0, 10])([tf.sparse.from_dense(first), sparse])
    assert tf.sparse.to_dense(joined).numpy().tolist() == [[1, 11], [2, 12]]
    with pytest.raises(ValueError, match="has 1 offsets for 2 tensors"):
        layers.ConcatenateWithOffset([0])([first, second])


def test_vectors_of_sparse_ids_are_combined_and_an_empty_row_is_zero() -> None:
    layer = layers.SparseEmbedding(5, 2, combiner="sum")
    vectors = layer(tf.sparse.from_dense([[1, 3], [0, 0]])).numpy()
    table = layer.embeddings.numpy()
    np.testing.assert_allclose(vectors, [table[1] + table[3], [0, 0]])
    np.testing.assert_allclose(layer(tf.constant([[0, 3]])).numpy(), [table[3]])
    with pytest.raises(ValueError, match="sum, mean or sqrtn"):
        layers.SparseEmbedding(5, 2, combiner="max")


def test_layers_compose_in_a_model_and_are_restored_from_their_settings() -> None:
    text = keras.Input((1,), dtype="string")
    ids = layers.Hashing(20)(text)
    output = layers.SparseEmbedding(20, 3)(layers.ToSparse()(ids))
    model = keras.Model(text, output)
    assert model(tf.constant([["a"], ["b"]])).shape == (2, 3)
    for layer, _, _ in CASES.values():
        assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()
