"""ElasticDL's embedding layer as a row table."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from edl.embeddings.model_tables import Tables
from edl.extensions.elasticdl.names.embedding import Embedding


def test_an_input_of_floats_becomes_one_of_ids_and_masks_id_zero() -> None:
    inputs = keras.Input((3,))
    layer = Embedding(2, mask_zero=True)
    layer.name_table("embedding_0")
    model = keras.Model(inputs, layer(inputs))
    assert model.input.dtype == "int64"
    ids = np.array([[5, 0, 7_000_000_000]])
    tables, tensor = Tables(seed=0), tf.constant(ids)
    with tables.discover(ids, tensor):
        vectors = model(tensor)
    assert vectors.shape == (1, 3, 2)
    assert list(tables.tables) == ["embedding_0"]
    assert layer.compute_mask(tensor).numpy().tolist() == [[True, False, True]]


def test_a_named_table_keeps_its_name_and_an_unknown_start_is_refused() -> None:
    layer = Embedding(2, input_dim=9, name="words")
    layer.name_table("embedding_0")
    assert (layer.spec.name, layer.spec.num_ids) == ("words", 9)
    with pytest.raises(ValueError, match="one of uniform, normal, zeros"):
        Embedding(2, embeddings_initializer="glorot_uniform")
