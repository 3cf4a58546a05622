"""Linear models of classes against scikit-learn's logistic regression, and the adapter of both frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from edl import frameworks
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks.newton import LogisticRows
from edl.spec import ClassLabel, Rows
from tests.edl.frameworks.test_least_squares import WITHOUT_HIDDEN
from tests.edl.programs import FRAMEWORKS, loaded, simple

rng = np.random.default_rng(11)
ROWS = 600
INPUTS = rng.normal(size=(ROWS, 4)).astype(np.float32)
SCORES = INPUTS @ [1.5, -1.0, 0.5, 0.0] + rng.normal(size=ROWS)
CLASSES = {2: (SCORES > 0.5).astype(np.int64), 3: np.digitize(SCORES, [-1.0, 1.0])}
WEIGHTS = rng.integers(0, 4, ROWS).astype(np.float64)


def solve(
    inputs: Any, classes: Any, weights: Any = None, l2: float | None = None, size: int = 250
) -> LogisticRows:
    """Return the rows, added in blocks."""
    count = int(classes.max()) + 1
    rows = LogisticRows(inputs.shape[1], 1 if count == 2 else count, l2)
    weights = np.ones(len(classes)) if weights is None else weights
    for first in range(0, len(classes), size):
        some = slice(first, first + size)
        rows.add(inputs[some], classes[some], weights[some])
    return rows


def probabilities(point: Any, inputs: Any) -> Any:
    logits = inputs @ point[:, :-1].T + point[:, -1]
    if logits.shape[1] == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits])
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def reference(inputs: Any, classes: Any, weights: Any = None, c: float = 1.0) -> Any:
    model = LogisticRegression(C=c, tol=1e-12, max_iter=10_000).fit(np.float64(inputs), classes, weights)
    return model.predict_proba(np.float64(inputs))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("l2", [None, 0.02])
def test_probabilities_equal_those_of_scikit_learn(count: int, weights: Any, l2: float | None) -> None:
    classes = CLASSES[count]
    total = ROWS if weights is None else weights.sum()
    point, loss = solve(INPUTS, classes, weights, l2).solve()
    expected = reference(INPUTS, classes, weights, 1.0 if l2 is None else 1 / (2 * l2 * total))
    np.testing.assert_allclose(probabilities(point, INPUTS), expected, atol=1e-6)
    losses = -np.log(expected[np.arange(ROWS), classes])
    assert loss == pytest.approx(np.average(losses, weights=weights), abs=1e-6)


def test_the_blocks_of_the_rows_change_no_bit() -> None:
    first, second = (solve(INPUTS, CLASSES[3], size=size).solve()[0] for size in (7, 600))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("count", [2, 3])
def test_classes_that_the_inputs_tell_apart_have_finite_weights(count: int) -> None:
    classes = np.digitize(INPUTS[:, 0], [0.0, 1.0][: count - 1])
    point, _ = solve(INPUTS, classes).solve()
    np.testing.assert_allclose(probabilities(point, INPUTS), reference(INPUTS, classes), atol=1e-6)
    unpenalised, loss = solve(INPUTS, classes, l2=0.0).solve()
    assert np.isfinite(unpenalised).all()
    assert loss < 1e-3


def test_without_a_penalty_inputs_that_depend_on_others_share_the_weights() -> None:
    doubled = np.column_stack([INPUTS, INPUTS[:, 0], np.zeros(ROWS)])
    point, _ = solve(doubled, CLASSES[2], l2=0.0).solve()
    plain, _ = solve(INPUTS, CLASSES[2], l2=0.0).solve()
    np.testing.assert_allclose(probabilities(point, doubled), probabilities(plain, INPUTS), atol=1e-7)
    assert point[0, 0] == pytest.approx(point[0, 4])
    assert point[0, 5] == 0


def test_one_class_and_rows_without_weight_have_a_solution() -> None:
    rows = LogisticRows(4, 1)
    assert rows.solve()[1] == 0.0
    rows.add(INPUTS, np.ones(ROWS), np.ones(ROWS))
    assert np.isfinite(rows.solve()[0]).all()


SOLVER = """

from edl.{framework} import Newton


def optimizer({parameters}):
    return Newton()
"""
FEATURES = {"dense": INPUTS}


def create(folder: Path, framework: str, count: int, *, hidden: bool = False) -> frameworks.Adapter:
    """Return the adapter of a program with Newton's method over four numbers."""
    end = f", {1 if count == 2 else count})"
    changes = {
        old.replace(", 1)", end): new.replace(", 1)", end) for old, new in WITHOUT_HIDDEN[framework].items()
    }
    subject = simple(
        folder,
        framework,
        rows=Rows(False, ROWS, ROWS),
        label=ClassLabel("y", tuple(range(count))),
        features=tuple(f"x{number}" for number in range(4)),
        replace={} if hidden else changes,
        append=SOLVER.format(framework=framework, parameters="parameters" if framework == "torch" else ""),
    )
    return frameworks.create(loaded(subject), {"dense": INPUTS[:2]}, labels_of(count)[:2], seed=1)


def labels_of(count: int) -> Any:
    return CLASSES[count][:, np.newaxis].astype(np.float32) if count == 2 else CLASSES[count]


def train(adapter: frameworks.Adapter, count: int, first: int, end: int) -> Any:
    some = slice(first, end)
    return adapter.train(Minibatches({"dense": INPUTS[some]}, labels_of(count)[some], 64))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("count", [2, 3])
def test_a_model_predicts_as_scikit_learn_and_its_losses_have_the_mean_of_the_final_loss(
    tmp_path: Path, framework: str, count: int
) -> None:
    adapter = create(tmp_path, framework, count)
    losses = [*train(adapter, count, 0, 400), *train(adapter, count, 400, 600)]
    expected = reference(INPUTS, CLASSES[count])
    logits = adapter.predict(FEATURES)
    if count == 2:
        logits = np.column_stack([np.zeros(ROWS), logits[:, 0]])
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, expected, atol=1e-6)
    assert losses[0] == 0
    assert losses[-1] * 200 / 600 == pytest.approx(
        adapter.evaluate(FEATURES, labels_of(count)).loss, rel=1e-5
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_training_goes_on_from_its_state(tmp_path: Path, framework: str) -> None:
    whole, stopped, resumed = (create(tmp_path / name, framework, 3) for name in ("a", "b", "c"))
    train(whole, 3, 0, 400), train(whole, 3, 400, 600)
    train(stopped, 3, 0, 400)
    weights, state = stopped.cut()()
    resumed.set_weights(weights)
    resumed.set_state(state)
    np.testing.assert_array_equal(resumed.predict(FEATURES), stopped.predict(FEATURES))
    train(resumed, 3, 400, 600)
    np.testing.assert_array_equal(resumed.predict(FEATURES), whole.predict(FEATURES))


def test_a_state_of_another_model_is_refused(tmp_path: Path) -> None:
    adapter = create(tmp_path, "torch", 2)
    state = adapter.get_state()
    with pytest.raises(JobError, match=r"it lacks newton\.inputs"):
        adapter.set_state({name: value for name, value in state.items() if "inputs" not in name})
    with pytest.raises(JobError, match="it is of 3 inputs"):
        adapter.set_state(state | {"newton.inputs": np.zeros((5, 3))})


def test_a_model_with_hidden_layers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="one linear layer, and the model has other weights"):
        create(tmp_path, "torch", 2, hidden=True)
