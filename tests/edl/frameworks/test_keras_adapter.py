"""Keras behind the adapter's contract."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edl import frameworks
from edl.errors import JobError
from edl.frameworks import Minibatches
from tests.edl.frameworks.adapter_cases import FEATURES, LABELS, AdapterCases, create, program
from tests.edl.frameworks.exchanging import gradients

HIDDEN = 'hidden = keras.layers.Dense(16, activation="relu")(concatenated(FEATURES, inputs))'


@pytest.mark.soak(
    "test_a_weighted_step_is_taken",
    "test_a_rate_of_zero_moves_nothing",
    "test_a_row_pulls_with_its_weight_in_a_minibatch_of_its_own",
    "test_an_error_in_the_loss_names_its_line",
    "test_an_optimizer_of_something_else_is_named",
    "test_class_labels_take_a_logit_each",
    "test_each_step_has_the_rate_it_is_given",
    "test_normalisation_state_is_among_the_weights_and_one_row_is_a_minibatch",
    "test_outputs_that_would_broadcast_against_labels_are_refused",
    "test_steps_in_one_call_equal_steps_in_several",
    "test_the_loss_of_the_last_smaller_minibatch_is_the_mean_of_its_rows",
    "test_the_same_seed_gives_the_same_weights_bit_for_bit",
    "test_training_goes_on_from_weights_and_state_as_if_nothing_had_been",
    "test_weighted_rows_count_as_often_as_their_weight",
    "test_weights_go_from_model_to_model_and_are_copies",
    "test_a_share_moves_no_normalisation_and_the_step_takes_its_mean_by_rows",
    "test_parameters_buffers_and_random_numbers_are_all_that_a_gradient_depends_on",
    "test_gradients_applied_equal_a_step",
    "test_parameters_that_are_handed_out_are_copies",
    "test_the_optimizer_is_described_for_servers",
)
class TestKeras(AdapterCases):
    framework = "keras"
    bad_output = (
        "keras.layers.Dense(1)(hidden))",
        "keras.layers.Reshape(())(keras.layers.Dense(1)(hidden)))",
    )
    scalar_loss = (
        "return keras.losses.mean_squared_error(labels, predictions)",
        "return keras.ops.mean(keras.losses.mean_squared_error(labels, predictions))",
    )
    normalised = (
        HIDDEN,
        f"{HIDDEN}\n    hidden = keras.layers.Dropout(0.2)(keras.layers.BatchNormalization()(hidden))",
    )
    sgd = "\n\ndef optimizer():\n    return keras.optimizers.SGD(1.0, OPTION)\n"
    not_elsewhere = (
        (("Dense(16, ", 'Dense(16, kernel_constraint="non_neg", '), "cannot keep the constraint of"),
        (("Dense(16, ", 'Dense(16, dtype="float64", '), "is float64; parameter servers hold float32"),
        (("keras.optimizers.Adam(", "keras.optimizers.Lion("), "cannot follow the optimizer Lion"),
    )


@pytest.mark.soak
def test_weights_are_named_by_position_whatever_the_process_built_before(tmp_path: Path) -> None:
    import keras

    subject = program(tmp_path, "keras")
    for _ in range(3):
        keras.layers.Dense(1)
    assert list(create(subject).get_weights()) == ["0.kernel", "1.bias", "2.kernel", "3.bias"]


def test_a_job_is_traced_once(tmp_path: Path) -> None:
    text = """

TRACES = []
_LOSS = loss


def loss(labels, predictions):
    TRACES.append(1)
    return _LOSS(labels, predictions)
"""
    subject = program(tmp_path, "keras", append=text)
    adapter = create(subject)
    for rows in (64, 17, 1, 64):
        adapter.train(Minibatches({"dense": FEATURES["dense"][:rows]}, LABELS[:rows], 16))
    assert subject.module.TRACES == [1]


@pytest.mark.soak
def test_penalties_move_weights_and_are_not_in_the_loss(tmp_path: Path) -> None:
    plain, penalised = (
        program(tmp_path / name, "keras", replace={"Dense(16, ": f"Dense(16, {extra}"})
        for name, extra in (("plain", ""), ("penalised", "kernel_regularizer='l2', "))
    )
    one, other = create(plain), create(penalised)
    expected, found = (gradients(adapter, FEATURES, LABELS) for adapter in (one, other))
    assert found.loss == expected.loss
    assert not np.allclose(found.values["0.kernel"], expected.values["0.kernel"])


@pytest.mark.soak
def test_a_subclassed_model_is_built_from_the_first_rows(tmp_path: Path) -> None:
    text = """

class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, features):
        return self.dense(features["dense"])


def custom_model():
    return Model()
"""
    adapter = create(program(tmp_path, "keras", append=text))
    assert list(adapter.get_weights()) == ["0.kernel", "1.bias"]
    adapter.set_learning_rate(0.1)
    first, *_, last = adapter.train(Minibatches(FEATURES, LABELS, 4))
    assert last < first


def test_a_model_of_several_outputs_is_refused(tmp_path: Path) -> None:
    edit = {"keras.layers.Dense(1)(hidden))": '{"a": keras.layers.Dense(1)(hidden)})'}
    with pytest.raises(JobError, match="several outputs"):
        create(program(tmp_path, "keras", replace=edit))


def test_a_schedule_gives_the_rate_of_any_step(tmp_path: Path) -> None:
    text = """

def optimizer():
    return keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.5, 10, 0.1))
"""
    adapter = create(program(tmp_path, "keras", append=text))
    assert [adapter.learning_rate(step) for step in (0, 10, 5)] == pytest.approx([0.5, 0.05, 0.5 * 0.1**0.5])


def test_preparing_twice_is_fine() -> None:
    frameworks.prepare("keras", 1)
    frameworks.prepare("keras", 2)
