"""Exact solutions against those of NumPy, and the adapter of both frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl import features as fc
from edl import frameworks
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks.adapter import with_gradients
from edl.frameworks.least_squares import LinearSolution, RowFactor, fill_unseen
from edl.spec import OneHot, Rows, Standardize, Vocabulary
from tests.edl.programs import FRAMEWORKS, loaded, simple

rng = np.random.default_rng(8)
INPUTS = rng.normal(size=(500, 6)).astype(np.float32)
LABELS = INPUTS @ rng.normal(size=6) + rng.normal(size=500) + 3


def factor_of(
    inputs: Any, labels: Any, weights: Any = None, *, l2: float | None = None, size: int = 64
) -> RowFactor:
    """Return the factor of the rows, added in blocks."""
    factor = RowFactor(inputs.shape[1], l2)
    for first in range(0, len(inputs), size):
        some = slice(first, first + size)
        factor.add(inputs[some], labels[some], None if weights is None else weights[some])
    return factor


def reference(inputs: Any, labels: Any, weights: Any = None, l2: float = 0.0) -> Any:
    """Return bias and weights of NumPy's lstsq, with the rows of a penalty behind those of the table."""
    root = np.sqrt(np.ones(len(inputs)) if weights is None else weights)
    rows = np.column_stack([np.ones(len(inputs)), inputs]).astype(np.float64) * root[:, None]
    penalty = np.sqrt(l2 * len(inputs)) * np.eye(inputs.shape[1] + 1)[1:]
    return np.linalg.lstsq(
        np.concatenate([rows, penalty]), np.append(labels * root, np.zeros(len(penalty))), rcond=None
    )[0]


@pytest.mark.parametrize("l2", [None, 0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_rows_have_the_solution_of_all_rows(l2: float | None, weighted: bool) -> None:
    weights = rng.exponential(size=500) if weighted else None
    found = factor_of(INPUTS, LABELS, weights, l2=l2).solve()
    expected = reference(INPUTS, LABELS, weights, l2 or 0.0)
    np.testing.assert_allclose([found.bias, *found.weights], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_inputs_that_depend_on_others_share_the_weights_and_change_no_prediction(unit: float) -> None:
    doubled = np.column_stack(
        [INPUTS, INPUTS[:, :2] * unit, np.zeros(500), 2 * INPUTS[:, 2] + INPUTS[:, 3] + 1]
    )
    found = factor_of(doubled, LABELS).solve()
    np.testing.assert_allclose(found.weights[6:8] * unit, found.weights[:2], rtol=1e-4, atol=1e-6)
    assert found.weights[8] == 0
    expected = reference(INPUTS, LABELS)
    np.testing.assert_allclose(
        doubled @ found.weights + found.bias, INPUTS @ expected[1:] + expected[0], rtol=1e-6, atol=1e-6
    )


def test_rounded_inputs_of_a_sum_of_many_have_no_great_weights() -> None:
    """A day is the sum of its month and its place in it, and days of the next month have no row of their month."""
    days = np.arange(270)
    months, places = np.divmod(days, 30)
    inputs = np.column_stack([days / 270, np.eye(12)[months], np.eye(30)[places]]).astype(np.float32)
    labels = days / 100 + np.random.default_rng(3).normal(size=270)
    found = factor_of(inputs, labels, l2=0.0).solve()
    assert np.abs(found.weights).max() < 10
    rows = np.column_stack([np.ones(270), inputs]).astype(np.float64)
    least = np.linalg.lstsq(rows, labels, rcond=1e-6)[0]
    np.testing.assert_allclose(inputs @ found.weights + found.bias, rows @ least, rtol=1e-5, atol=1e-5)


def test_the_penalty_of_many_inputs_and_few_rows_predicts_other_rows_better_than_none() -> None:
    inputs, true = rng.normal(size=(400, 60)), rng.normal(size=60) / 8
    labels = inputs @ true + rng.normal(size=400)
    plain, chosen = (factor_of(inputs[:100], labels[:100], l2=l2).solve() for l2 in (0.0, None))
    errors = [
        np.mean((inputs[100:] @ found.weights + found.bias - labels[100:]) ** 2) for found in (plain, chosen)
    ]
    assert errors[1] < 0.8 * errors[0]


def test_fewer_rows_than_inputs_have_a_solution() -> None:
    found = factor_of(INPUTS[:4], LABELS[:4]).solve()
    assert np.isfinite(found.weights).all()
    assert found.residual >= 0


def test_ids_without_rows_have_the_mean_effect_of_the_known_ones() -> None:
    features = fc.Features(Standardize("x", 0.0, 1.0), OneHot(Vocabulary("city", ("a", "b", "c"), "other")))
    assert features.width == 6  # x, three cities, NULL, others
    counts = np.array([0.0, 6.0, 3.0, 1.0, 0.0, 0.0])
    filled = fill_unseen(LinearSolution(np.array([2.0, 1.0, 4.0, 0.0, 0.0, 0.0]), 5.0, 0.0), counts, features)
    mean = (6 * 1 + 3 * 4) / 10
    np.testing.assert_allclose(filled.weights, [2.0, 1 - mean, 4 - mean, -mean, 0.0, 0.0])
    assert filled.bias == pytest.approx(5 + mean)
    counts = np.array([0.0, 1e9, 1.0, 1e-7, 2e-8, -3e-8])  # the last three by rounding
    rare = fill_unseen(LinearSolution(np.array([2.0, 1.0, 4.0, 9.0, 9.0, 9.0]), 5.0, 0.0), counts, features)
    np.testing.assert_allclose(rare.weights, [2.0, 0.0, 3.0, 0.0, 0.0, 0.0], atol=1e-8)


SOLVER = """

from edl.{framework} import LeastSquares


def optimizer({parameters}):
    return LeastSquares()
"""
# The programs of tests have a hidden layer.
WITHOUT_HIDDEN = {
    "torch": {
        "        self.hidden = nn.Linear(FEATURES.width, 16)\n": "",
        "nn.Linear(16, 1)": "nn.Linear(FEATURES.width, 1)",
        "torch.relu(self.hidden(self.features(features)))": "self.features(features)",
    },
    "keras": {
        'keras.layers.Dense(16, activation="relu")(concatenated(FEATURES, inputs))': "concatenated(FEATURES, inputs)"
    },
}
FEATURES = {"dense": INPUTS}
TARGETS = LABELS[:, None].astype(np.float32)


def create(folder: Path, framework: str, *, hidden: bool = False) -> frameworks.Adapter:
    """Return the adapter of a program with least squares over six numbers."""
    subject = simple(
        folder,
        framework,
        rows=Rows(False, 500, 500),
        features=tuple(f"x{number}" for number in range(6)),
        replace={} if hidden else WITHOUT_HIDDEN[framework],
        append=SOLVER.format(framework=framework, parameters="parameters" if framework == "torch" else ""),
    )
    return frameworks.create(loaded(subject), {"dense": INPUTS[:2]}, TARGETS[:2], seed=1)


def train(adapter: frameworks.Adapter, first: int, end: int) -> Any:
    some = slice(first, end)
    return adapter.train(Minibatches({"dense": INPUTS[some]}, TARGETS[some], 64))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_model_predicts_as_the_solution_does_and_its_losses_have_the_mean_of_the_final_loss(
    tmp_path: Path, framework: str
) -> None:
    adapter = create(tmp_path, framework)
    losses = [*train(adapter, 0, 300), *train(adapter, 300, 500)]
    assert len(losses) == 5 + 4
    expected = reference(INPUTS, TARGETS[:, 0])
    predicted = adapter.predict(FEATURES)
    np.testing.assert_allclose(predicted[:, 0], INPUTS @ expected[1:] + expected[0], rtol=1e-6, atol=1e-6)
    evaluated = adapter.evaluate(FEATURES, TARGETS)
    mean = (5 * losses[0] * 60 + 4 * losses[-1] * 50) / 500
    assert mean == pytest.approx(evaluated.loss, rel=1e-5)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_training_goes_on_from_its_state(tmp_path: Path, framework: str) -> None:
    whole, stopped, resumed = (create(tmp_path / name, framework) for name in ("a", "b", "c"))
    train(whole, 0, 300), train(whole, 300, 500)
    train(stopped, 0, 300)
    weights, state = stopped.cut()()
    resumed.set_weights(weights)
    resumed.set_state(state)
    np.testing.assert_array_equal(resumed.predict(FEATURES), stopped.predict(FEATURES))
    train(resumed, 300, 500)
    np.testing.assert_array_equal(resumed.predict(FEATURES), whole.predict(FEATURES))


def test_a_state_of_another_model_is_refused(tmp_path: Path) -> None:
    adapter = create(tmp_path, "torch")
    state = adapter.get_state()
    with pytest.raises(JobError, match=r"it lacks least_squares\.rows"):
        adapter.set_state({name: value for name, value in state.items() if "rows" not in name})
    with pytest.raises(JobError, match="it is of 3 inputs"):
        adapter.set_state(state | {"least_squares.factor": np.zeros((5, 5))})


def test_a_model_with_hidden_layers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="one linear layer with one output"):
        create(tmp_path, "torch", hidden=True)


def test_there_are_no_gradients_to_combine(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="the model takes no steps"):
        with_gradients(create(tmp_path, "torch"))
