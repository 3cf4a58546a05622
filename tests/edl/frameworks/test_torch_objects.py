"""Losses and optimizers of PyTorch as functions of a program."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from edl.errors import SemanticError
from edl.frameworks.torch.objects import loss, optimizer, takes_logits

OUTPUTS = torch.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
CLASSES = torch.tensor([0, 1, 0])


@pytest.mark.parametrize(
    "given", ["cross_entropy", nn.CrossEntropyLoss(), nn.CrossEntropyLoss(label_smoothing=0.1)]
)
def test_a_mean_becomes_a_value_per_row_of_the_same_mean(given: Any) -> None:
    module = nn.CrossEntropyLoss() if isinstance(given, str) else given
    losses = loss(given)(CLASSES, OUTPUTS)
    assert losses.shape == (3,)
    torch.testing.assert_close(losses.mean(), module(OUTPUTS, CLASSES))


def test_several_outputs_of_a_row_are_one_value() -> None:
    labels = torch.zeros(3, 2)
    losses = loss(nn.MSELoss())(labels, OUTPUTS)
    torch.testing.assert_close(losses, (OUTPUTS**2).mean(1))


@pytest.mark.parametrize(
    "given",
    [
        functional.cross_entropy,
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0])),
        nn.CrossEntropyLoss(ignore_index=1),
        nn.CrossEntropyLoss(reduction="sum"),
        lambda outputs, labels: functional.cross_entropy(outputs, labels),
    ],
)
def test_a_loss_that_is_no_plain_mean_stays_what_it_is(given: Any) -> None:
    torch.testing.assert_close(loss(given)(CLASSES, OUTPUTS), given(OUTPUTS, CLASSES))


def test_a_loss_that_takes_the_labels_first_is_refused() -> None:
    with pytest.raises(SemanticError, match="takes y_true first"):
        loss(lambda y_true, y_pred: y_pred)


@pytest.mark.parametrize(
    ("given", "logits"),
    [
        ("cross_entropy", True),
        (nn.BCEWithLogitsLoss(), True),
        (functional.cross_entropy, True),
        ("mse", False),
        (lambda outputs, labels: outputs, False),
    ],
)
def test_losses_of_logits_are_known(given: Any, logits: bool) -> None:
    assert takes_logits(given) is logits


def test_an_optimizer_is_a_name_a_function_or_an_object() -> None:
    parameters = list(nn.Linear(2, 1).parameters())
    named = optimizer("adamw", 0.5)(parameters)
    assert isinstance(named, torch.optim.AdamW)
    assert named.param_groups[0]["lr"] == 0.5
    assert isinstance(optimizer(torch.optim.SGD, None)(parameters), torch.optim.SGD)
    made = torch.optim.Adam(parameters)
    assert optimizer(made, None)(parameters) is made


def test_an_optimizer_of_another_model_is_refused() -> None:
    other = torch.optim.SGD(nn.Linear(2, 1).parameters())
    with pytest.raises(SemanticError, match="does not move the parameters of this model"):
        optimizer(other, None)(list(nn.Linear(2, 1).parameters()))


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(SemanticError, match="no loss cros_entropy") as caught:
        loss("cros_entropy")
    assert caught.value.hint == "did you mean cross_entropy?"
    with pytest.raises(SemanticError, match="no optimizer adm") as caught:
        optimizer("adm", None)
    assert "adam" in str(caught.value.hint)
