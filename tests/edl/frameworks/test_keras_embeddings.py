"""Row tables in Keras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from edl.embeddings.model_tables import Tables
from edl.frameworks import Minibatches
from edl.frameworks.keras.embeddings import move_large_embeddings
from tests.edl.frameworks.row_cases import FEATURES, KERAS, LABELS, RowCases, create, part


@pytest.mark.soak(
    "test_an_optimizer_that_rows_cannot_follow_is_named",
    "test_evaluation_and_prediction_make_no_row",
    "test_ids_that_the_model_computes_are_refused",
    "test_layers_that_differ_in_their_table_are_refused",
    "test_limits_of_the_job_hold_for_its_tables_and_are_part_of_its_state",
    "test_a_job_is_traced_once",
    "test_lists_need_a_combiner",
    "test_numbers_are_no_ids",
    "test_outputs_are_what_rows_and_weights_give",
    "test_rows_that_do_not_fit_change_nothing",
    "test_steps_in_one_call_equal_steps_in_several",
    "test_the_same_seed_gives_the_same_rows_bit_for_bit",
    "test_weights_carry_the_first_values_of_rows_that_were_never_trained",
    "test_sgd_moves_rows_as_it_moves_embeddings_in_the_graph",
    "test_lists_of_two_columns_share_one_table",
    "test_lists_of_one_length_train_as_an_array_does",
    "test_rows_may_be_handed_in_and_are_read_from_any_source",
    "test_each_step_has_the_rate_it_is_given",
    "test_training_goes_on_from_weights_and_the_slots_of_rows",
)
class TestKeras(RowCases):
    framework = "keras"
    model = KERAS
    computed = ('[inputs["f0"], inputs["f1"]]', '[inputs["f0"] + 1, inputs["f1"]]')
    other_dim = ('"both", 3, num_ids=30)(inputs["f1"])', '"both", 2, num_ids=30)(inputs["f1"])')
    own_optimizer = """

class Own(keras.optimizers.SGD):
    pass


def optimizer():
    return Own(0.1)
"""
    bag = """

from edl.keras import Embedding


def custom_model():
    inputs = {"tags": keras.Input(SHAPE, dtype="int64", name="tags")}
    return keras.Model(inputs, Embedding("tags", 1, COMBINER, num_ids=20)(inputs["tags"]))


def optimizer():
    return keras.optimizers.SGD(0.1)
"""
    helpers = """

from edl.keras import weighted_sum

FEATURES = fc.Features(*(fc.embedding(CATEGORY, dim=4, table=TABLE) for name in NAMES))


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = keras.layers.Dense(8, activation="tanh")(concatenated(FEATURES, inputs))
    return keras.Model(inputs, weighted_sum(FEATURES, inputs) + keras.layers.Dense(1)(hidden))


def optimizer():
    return keras.optimizers.SGD(0.1, OPTIONS)


"""

    def dense(self, weights: dict[str, Any]) -> tuple[Any, Any]:
        return weights["0.kernel"], weights["1.bias"]

    def outputs(self, model: Any, features: Any = FEATURES) -> np.ndarray:
        found: np.ndarray = model(features).numpy()
        return found

    def test_a_job_is_traced_once(self, tmp_path: Path) -> None:
        text = """

TRACES = []
_LOSS = loss


def loss(labels, predictions):
    TRACES.append(1)
    return _LOSS(labels, predictions)
"""
        subject = self.program(tmp_path, append=text)
        adapter = create(subject)
        for rows in (64, 17, 1, 64):
            adapter.train(Minibatches(part(slice(rows)), LABELS[:rows], 16))
        assert subject.module.TRACES == [1]


def moved_model(initializer: Any, features: Any, **options: Any) -> tuple[Any, Any]:
    """A model with a large and a small embedding layer over two inputs, and what is made of it."""
    ids, few = keras.Input((3,), name="ids"), keras.Input((2,), name="few", dtype="int32")
    large = keras.layers.Embedding(1000, 4, embeddings_initializer=initializer, name="large", **options)
    small = keras.layers.Embedding(5, 4, name="small")
    joined = keras.layers.Concatenate(axis=1)([large(ids), small(few)])
    model = keras.Model({"ids": ids, "few": few}, keras.layers.Flatten()(joined))
    return model, move_large_embeddings(model, 10_000, features)


IDS = {"ids": np.arange(6).reshape(2, 3), "few": np.ones((2, 2), dtype=np.int64)}


def test_a_large_embedding_layer_becomes_a_row_table_that_starts_alike() -> None:
    _, model = moved_model(keras.initializers.RandomUniform(-0.2, 0.2), IDS)
    tensors, tables = {name: tf.constant(array) for name, array in IDS.items()}, Tables(seed=3)
    with tables.discover(IDS, tensors):
        outputs = model(tensors).numpy()
    [(name, table)] = tables.tables.items()
    assert (name, table.spec.num_ids, table.spec.dim, table.spec.scale) == ("embedding_0", 1000, 4, 0.2)
    np.testing.assert_array_equal(outputs[:, :12], table.read(np.arange(6)).reshape(2, 12))
    assert [weight.path for weight in model.weights] == ["small/embeddings"]


@pytest.mark.parametrize(
    ("initializer", "features", "options"),
    [
        ("glorot_uniform", IDS, {}),
        ("uniform", {**IDS, "ids": IDS["ids"].astype(np.float32)}, {}),
        ("uniform", IDS, {"embeddings_regularizer": "l2"}),
    ],
    ids=["another start", "ids of floats", "a regularizer"],
)
def test_a_layer_that_rows_cannot_replace_stays(initializer: str, features: Any, options: Any) -> None:
    model, moved = moved_model(initializer, features, **options)
    assert moved is model


def test_layers_within_the_threshold_and_models_that_are_no_graph_stay() -> None:
    class Own(keras.Model):  # type: ignore[misc]
        pass

    own = Own()
    assert move_large_embeddings(own, 1, IDS) is own
    model, _ = moved_model("uniform", IDS)
    assert move_large_embeddings(model, 10**6, IDS) is model
