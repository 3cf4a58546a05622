"""The optimizers of rows against the frameworks' own, and against formulas in NumPy for steps that miss rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from edl.embeddings import Optimizer, RowTable, StoredTable, TableSpec
from edl.embeddings.optimizers import Framework, names
from edl.errors import JobError
from tests.edl.embeddings.reference_optimizers import (
    BETAS,
    KERAS,
    TORCH,
    of_torch,
    stepped_by_keras,
    stepped_by_torch,
)

STEPS, ROWS, DIM, RATE = 8, 6, 3, 0.03


def start() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(ROWS, DIM)).astype(np.float32)


def gradients() -> Iterator[np.ndarray]:
    rng = np.random.default_rng(2)
    return (rng.normal(size=(ROWS, DIM)).astype(np.float32) for _ in range(STEPS))


def table(optimizer: Optimizer) -> RowTable:
    made = RowTable(TableSpec("t", DIM), 0, optimizer)
    made.load(StoredTable(np.arange(ROWS), start(), np.empty((ROWS, 0, DIM), np.float32), 0))
    return made


def moved(optimizer: Optimizer) -> np.ndarray:
    """The rows after steps that touch all of them."""
    subject = table(optimizer)
    for gradient in gradients():
        gradient.flags.writeable = False
        subject.update(np.arange(ROWS), gradient, RATE)
    return subject.export().rows


@pytest.mark.variants(2)
@pytest.mark.parametrize("case", TORCH)
def test_steps_on_all_rows_equal_torch(case: str) -> None:
    expected = stepped_by_torch(case, start(), gradients(), RATE)
    np.testing.assert_allclose(moved(of_torch(case)), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.variants(3)
@pytest.mark.parametrize("case", KERAS)
def test_steps_on_all_rows_equal_keras(case: str) -> None:
    expected, optimizer = stepped_by_keras(case, start(), gradients(), RATE)
    np.testing.assert_allclose(moved(optimizer), expected, rtol=1e-6, atol=1e-6)


LAZY: dict[str, tuple[Any, dict[str, Any], Optimizer]] = {
    "adam": (
        torch.optim.SparseAdam,
        {"betas": (0.8, 0.95), "eps": 1e-3},
        Optimizer("torch", "adam", {**BETAS, "epsilon": 1e-3, "amsgrad": False}),
    ),
    "sparseadam": (
        torch.optim.SparseAdam,
        {},
        Optimizer("torch", "sparseadam", {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "amsgrad": False}),
    ),
    "adagrad": (
        torch.optim.Adagrad,
        {"initial_accumulator_value": 0.1},
        Optimizer("torch", "adagrad", {"lr_decay": 0, "initial_accumulator_value": 0.1, "epsilon": 1e-10}),
    ),
    "sgd": (torch.optim.SGD, {}, Optimizer("torch", "sgd", {"momentum": 0})),
}


@pytest.mark.variants(3)
@pytest.mark.parametrize("case", LAZY)
def test_steps_that_miss_rows_equal_torch_on_sparse_gradients(case: str) -> None:
    kind, arguments, optimizer = LAZY[case]
    embedding = torch.nn.Embedding.from_pretrained(torch.from_numpy(start()), freeze=False, sparse=True)
    reference = kind(embedding.parameters(), lr=RATE, **arguments)
    subject, rng = table(optimizer), np.random.default_rng(4)
    for gradient in gradients():
        ids = rng.integers(0, ROWS, 4)  # some twice, some never
        reference.zero_grad()
        (embedding(torch.from_numpy(ids)) * torch.from_numpy(gradient[:4])).sum().backward()
        with torch.sparse.check_sparse_tensor_invariants(True):  # torch warns of its own tensors otherwise
            reference.step()
        subject.update(ids, gradient[:4], RATE)
    expected = embedding.weight.detach().numpy()
    np.testing.assert_allclose(subject.export().rows, expected, rtol=1e-6, atol=1e-6)


# Every hyper-parameter of every rule.
EVERYTHING = dict.fromkeys(
    [
        *(
            "momentum",
            "nesterov",
            "beta_1",
            "beta_2",
            "epsilon",
            "amsgrad",
            "centered",
            "rho",
            "weight_decay",
        ),
        *("momentum_decay", "lr_decay", "initial_accumulator_value", "beta", "l1_regularization_strength"),
        *("l2_regularization_strength", "l2_shrinkage_regularization_strength"),
    ],
    0.1,
) | {"learning_rate_power": -0.5}
RULES = [(framework, name) for framework in ("keras", "torch") for name in names(framework)]


@pytest.mark.variants(2)
@pytest.mark.parametrize(("framework", "name"), RULES)
def test_no_rule_moves_a_row_that_is_not_touched(framework: Framework, name: str) -> None:
    subject = table(Optimizer(framework, name, EVERYTHING))
    for gradient in gradients():
        subject.update(np.array([0, 4]), gradient[:2], RATE)
    rows = subject.export().rows
    still = [1, 2, 3, 5]
    np.testing.assert_array_equal(rows[still], start()[still])
    assert (rows[[0, 4]] != start()[[0, 4]]).all()


def test_an_optimizer_without_a_rule_is_named_with_the_nearest() -> None:
    with pytest.raises(JobError, match="cannot follow the optimizer adm") as caught:
        RowTable(TableSpec("t", 1), 0, Optimizer("torch", "adm"))
    assert "adam" in str(caught.value.hint)


def test_a_hyper_parameter_that_lacks_is_named() -> None:
    with pytest.raises(JobError, match="adam lacks beta_1"):
        RowTable(TableSpec("t", 1), 0, Optimizer("torch", "adam"))
