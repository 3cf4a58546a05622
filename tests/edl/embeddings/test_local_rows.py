"""Local copies of rows, compared with a table of the same optimizer."""

from __future__ import annotations

import numpy as np
import pytest

from edl.embeddings import Optimizer, RowTable, StoredTable, TableSpec
from edl.embeddings.local_rows import LocalRows
from edl.embeddings.model_tables import Need

ADAM = Optimizer("torch", "adam", {"beta_1": 0.9, "beta_2": 0.99, "epsilon": 1e-8, "amsgrad": 0.0})
SGD = Optimizer("torch", "sgd", {"momentum": 0.0})
IDS = np.array([30, 10, 20, 40], np.int64)
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
rng = np.random.default_rng(3)
STEPS = [
    (at, rng.normal(size=(len(at), 3)).astype(np.float32)) for at in (np.array([0, 2]), np.array([2, 1, 0]))
]


def positions(at: np.ndarray) -> Need:
    return Need({"t": at}, [])


@pytest.mark.parametrize("optimizer", [ADAM, SGD], ids=["adam", "sgd"])
def test_steps_on_copies_are_steps_of_a_table(optimizer: Optimizer) -> None:
    table = RowTable(TableSpec("t", 3), 1, optimizer)
    order = np.argsort(IDS)
    table.load(StoredTable(IDS[order], ROWS[order], np.empty((4, 0, 3), np.float32), 0))
    local = LocalRows(optimizer)
    local.replace({"t": IDS}, {"t": ROWS}, adds_own=False)
    for at, gradients in STEPS:
        np.testing.assert_array_equal(local.fetch(positions(at)).blocks["t"], table.read(IDS[at]))
        local.add({"t": at}, {"t": gradients})
        local.step({"t": at}, {"t": gradients}, 0.1)
        table.update(IDS[at], gradients, 0.1, distinct=True)
    every = np.arange(4)
    np.testing.assert_array_equal(local.fetch(positions(every)).blocks["t"], table.read(IDS))
    expected = np.zeros((4, 3), np.float32)
    for at, gradients in STEPS:
        expected[at] += gradients
    np.testing.assert_array_equal(local.sums()["t"], expected)


@pytest.mark.parametrize("adds_own", [False, True])
def test_rows_that_stay_keep_their_steps_if_they_are_to(adds_own: bool) -> None:
    """Larger than before, so that the memory grows as well."""
    local = LocalRows(SGD)
    local.replace({"t": IDS}, {"t": ROWS}, adds_own=False)
    at, gradients = STEPS[0]
    local.step({"t": at}, {"t": gradients}, 1.0)
    others = np.array([20, 50, 30, *range(100, 110)], np.int64)
    pulled = np.full((len(others), 3), 5, np.float32)
    local.replace({"t": others}, {"t": pulled}, adds_own=adds_own)
    expected = pulled.copy()
    if adds_own:
        expected[[2, 0]] -= gradients  # of the ids 30 and 20
    np.testing.assert_allclose(
        local.fetch(positions(np.arange(len(others)))).blocks["t"], expected, rtol=1e-5
    )
    assert not local.sums()["t"].any()
    assert (pulled == 5).all()
