"""Models, optimizers and losses by name."""

from __future__ import annotations

import pytest

from edl.errors import SemanticError
from sqlflow_edl.analysis.catalog import MODELS, OPTIMIZERS, parameters_of_others
from sqlflow_edl.analysis.entries import Catalog, Entry
from sqlflow_edl.analysis.losses import LOSSES
from sqlflow_edl.codegen.frameworks import KERAS, TORCH


@pytest.mark.parametrize(
    ("catalog", "written", "name"),
    [
        (MODELS, "dnnclassifier", "DNNClassifier"),
        (OPTIMIZERS, "Adam", "adam"),
        (OPTIMIZERS, "RMSprop", "rmsprop"),
        (OPTIMIZERS, "GradientDescent", "sgd"),
        (OPTIMIZERS, "AdagradOptimizer", "adagrad"),
        (LOSSES, "MSE", "mean_squared_error"),
        (LOSSES, "SparseCategoricalCrossentropy", "cross_entropy"),
        (LOSSES, "MeanSquaredError", "mean_squared_error"),
    ],
)
def test_an_entry_is_found_as_its_users_write_it(catalog: Catalog[Entry], written: str, name: str) -> None:
    assert catalog.get(written, None).name == name


def test_an_unknown_entry_is_answered_with_the_nearest() -> None:
    with pytest.raises(SemanticError, match="unknown optimizer adm") as raised:
        OPTIMIZERS.get("adm", None)
    assert raised.value.hint == "did you mean adam?"


def test_every_optimizer_is_spelt_in_the_frameworks_that_it_claims() -> None:
    for entry in OPTIMIZERS.entries.values():
        assert (entry.name in KERAS) == ("keras" in entry.frameworks)
        assert (entry.name in TORCH) == ("torch" in entry.frameworks)


def test_a_parameter_of_what_is_not_chosen_is_known_to_belong_elsewhere() -> None:
    found = parameters_of_others([OPTIMIZERS.entries["adam"], MODELS.entries["LinearRegressor"]])
    assert found["optimizer.momentum"] == "sgd, rmsprop"
    assert "optimizer.beta_1" not in found
