"""Losses and optimizers of Keras as functions of a program."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from edl.errors import SemanticError
from edl.frameworks.keras.objects import loss, optimizer, takes_logits

OUTPUTS = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]], np.float32)
CLASSES = np.array([0, 1, 0])
LOGITS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def test_a_mean_becomes_a_value_per_row_of_the_same_mean() -> None:
    losses = np.asarray(loss(LOGITS)(CLASSES, OUTPUTS))
    assert losses.shape == (3,)
    np.testing.assert_allclose(losses.mean(), LOGITS(CLASSES, OUTPUTS), rtol=1e-6)


@pytest.mark.parametrize("given", ["mse", keras.losses.mean_squared_error, keras.losses.MeanSquaredError()])
def test_names_functions_and_objects_give_a_value_per_row(given: Any) -> None:
    losses = np.asarray(loss(given)(np.zeros((3, 2), np.float32), OUTPUTS))
    np.testing.assert_allclose(losses, (OUTPUTS**2).mean(1), rtol=1e-6)


def test_several_values_of_a_row_are_one() -> None:
    losses = np.asarray(loss("mse")(np.zeros((1, 3, 2), np.float32), OUTPUTS[np.newaxis]))
    np.testing.assert_allclose(losses, [(OUTPUTS**2).mean()], rtol=1e-6)


def test_a_sum_stays_one_value() -> None:
    given = keras.losses.MeanSquaredError(reduction="sum")
    assert np.asarray(loss(given)(np.zeros((3, 2), np.float32), OUTPUTS)).shape == ()


def test_losses_of_logits_are_known() -> None:
    assert takes_logits(LOGITS)
    assert not takes_logits("mse")
    assert not takes_logits(keras.losses.BinaryCrossentropy())


def test_an_optimizer_is_a_name_a_function_or_an_object_and_made_anew_each_time() -> None:
    assert float(optimizer("adam", 0.5)().learning_rate) == 0.5
    assert isinstance(optimizer(keras.optimizers.SGD, None)(), keras.optimizers.SGD)
    given = keras.optimizers.Adam(0.25, beta_1=0.5)
    make = optimizer(given, None)
    made = make()
    assert (float(made.learning_rate), made.beta_1) == (0.25, 0.5)
    assert made is not given
    assert make() is not made


def test_unknown_names_are_answered() -> None:
    with pytest.raises(SemanticError, match="no loss binary_crosentropy") as caught:
        loss("binary_crosentropy")
    assert caught.value.hint == "did you mean binary_crossentropy?"
    with pytest.raises(SemanticError, match="no optimizer adm"):
        optimizer("adm", None)
