"""The size of a model, against layers counted by hand; tests/sqlflow_edl/session/test_session.py compares it with
models."""

from __future__ import annotations

import msgspec
import pytest

from edl.spec import ClassLabel, Component, Embedding, JobSpec, Numeric, OneHot, Vocabulary
from sqlflow_edl.analysis import model_size
from tests.edl.models.conftest import SPEC

CITY = Vocabulary("city", ("oslo", "rome", "lima"))  # 4 ids


def spec(model: str, **changes: object) -> JobSpec:
    features = (Numeric("a"), OneHot(CITY), Embedding(CITY, 5))  # 1 + 4 + 5 inputs, 20 numbers in the table
    params = changes.pop("params", {})
    return msgspec.structs.replace(
        SPEC,
        model=Component(model, params),
        inputs={"features": features},
        **changes,  # type: ignore[arg-type]
    )


def test_a_dense_network_is_its_layers_and_its_tables() -> None:
    found = spec("DNNRegressor", params={"hidden_units": (7, 3)})
    assert model_size.input_width(found) == 10
    assert model_size.parameters(found) == 20 + (10 + 1) * 7 + (7 + 1) * 3 + (3 + 1) * 1


def test_normalised_layers_have_a_scale_and_a_shift_each() -> None:
    plain = model_size.parameters(spec("DNNRegressor", params={"hidden_units": (7, 3)})) or 0
    assert (
        model_size.parameters(spec("DNNRegressor", params={"hidden_units": (7, 3), "batch_norm": True}))
        == plain + 20
    )


def test_a_classifier_has_a_logit_per_class_and_one_of_two() -> None:
    three, two = ClassLabel("y", ("a", "b", "c")), ClassLabel("y", ("a", "b"))
    assert model_size.parameters(spec("LinearClassifier", label=three)) == 20 + 11 * 3
    assert model_size.parameters(spec("LinearClassifier", label=two)) == 20 + 11


def test_a_model_that_is_not_built_in_has_no_known_size() -> None:
    assert model_size.parameters(spec("my.zoo.Model")) is None
    assert model_size.memory(spec("my.zoo.Model")) is None


@pytest.mark.parametrize(
    ("optimizer", "slots"),
    [
        (Component("sgd", {"momentum": 0.0}), 0),
        (Component("sgd", {"momentum": 0.9}), 1),
        (Component("adam"), 2),
        (Component("adam", {"amsgrad": True}), 3),
        (Component("rmsprop", {"momentum": 0.5, "centered": True}), 3),
    ],
)
def test_memory_counts_parameters_gradients_and_what_the_optimizer_keeps(
    optimizer: Component, slots: int
) -> None:
    found = spec("LinearRegressor", optimizer=optimizer)
    assert model_size.memory(found) == 31 * 4 * (2 + slots)
