"""Principal components of blocks of rows against NumPy's singular vectors of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edl.errors import JobError
from edl.extensions.decomposition import PrincipalComponents
from edl.extensions.decomposition.components import Components, ComponentsAdapter, solve_components
from edl.frameworks import Minibatches
from edl.frameworks.least_squares import RowFactor

rng = np.random.default_rng(5)
ROWS = (
    rng.normal(size=(700, 3)) @ rng.normal(size=(3, 8))
    + rng.normal(size=(700, 8)) / 4
    + 1000 * rng.normal(size=8)
)


def components_of(rows: Any, number: int, weights: Any = None, *, size: int = 64) -> Components:
    """Return the components of the rows, added in blocks."""
    factor = RowFactor(rows.shape[1])
    for first in range(0, len(rows), size):
        some = slice(first, first + size)
        block = rows[some]
        factor.add(block, np.zeros(len(block)), None if weights is None else weights[some])
    return solve_components(factor.factor, number)


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_rows_have_the_components_of_all_rows(weighted: bool) -> None:
    weights = rng.exponential(size=700) if weighted else None
    found = components_of(ROWS, 4, weights)

    shares = np.ones(700) if weights is None else weights
    centred = ROWS - np.average(ROWS, axis=0, weights=shares)
    _, values, vectors = np.linalg.svd(centred * np.sqrt(shares)[:, None], full_matrices=False)
    np.testing.assert_allclose(found.variances, values[:4] ** 2 / (shares.sum() - 1), rtol=1e-9)
    np.testing.assert_allclose(np.abs(found.components @ vectors[:4].T), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(found.means, np.average(ROWS, axis=0, weights=shares), rtol=1e-12)
    assert found.total == pytest.approx((values**2).sum() / (shares.sum() - 1))


def test_the_largest_coordinate_of_a_component_is_positive_whatever_the_order_of_the_blocks() -> None:
    found, other = components_of(ROWS, 3), components_of(ROWS[::-1], 3, size=50)
    assert (found.components[np.arange(3), np.abs(found.components).argmax(axis=1)] > 0).all()
    np.testing.assert_allclose(found.components, other.components, atol=1e-9)


def test_the_fewest_components_that_explain_the_share_are_counted() -> None:
    found = Components(np.zeros(3), np.eye(3), np.array([6.0, 3.0, 1.0]), 10.0)
    assert [found.count(ratio) for ratio in (None, 0.5, 0.6, 0.61, 0.9, 1.0)] == [3, 1, 1, 2, 2, 3]
    assert found._replace(total=0.0).count(0.5) == 3


@pytest.mark.parametrize("rows", [ROWS[:1], np.ones((5, 4)), ROWS[:3]])
def test_few_and_constant_rows_have_finite_components(rows: Any) -> None:
    found = components_of(rows, min(rows.shape))
    assert np.isfinite(found.components).all()
    assert (found.variances >= 0).all()


class LayerAdapter:
    """Adapter of a layer without a program."""

    framework = "torch"

    def __init__(self, layer: Any) -> None:
        self.model = layer

    def predict_with(self, features: Any, names: Any) -> Any:
        return None, {"embedding": features["dense"]}

    def predict(self, features: Any) -> Any:
        import torch

        with torch.no_grad():
            return self.model(torch.from_numpy(features["dense"])).numpy()

    def get_weights(self) -> dict[str, Any]:
        return {name: value.numpy().copy() for name, value in self.model.state_dict().items()}

    def set_weights(self, weights: Any) -> None:
        import torch

        self.model.load_state_dict(
            {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
        )


SCALED = ((ROWS - ROWS.mean(axis=0)) / ROWS.std(axis=0)).astype(np.float32)


def train(adapter: ComponentsAdapter, first: int, end: int) -> Any:
    some = SCALED[first:end]
    return adapter.train(Minibatches({"dense": some}, np.zeros(len(some)), 128))


def test_a_model_predicts_the_components_and_the_errors_of_the_restored_rows() -> None:
    adapter = ComponentsAdapter(LayerAdapter(PrincipalComponents(2, 8)), None)  # type: ignore[arg-type]
    losses = [*train(adapter, 0, 384), *train(adapter, 384, 700)]
    outputs = adapter.predict({"dense": SCALED})

    rows = SCALED - SCALED.astype(np.float64).mean(axis=0)
    _, _, vectors = np.linalg.svd(rows, full_matrices=False)
    expected, restored = rows @ vectors[:2].T, rows @ vectors[:2].T @ vectors[:2]
    np.testing.assert_allclose(np.abs(outputs[:, :2]), np.abs(expected), atol=1e-6)
    np.testing.assert_allclose(outputs[:, 2], np.square(rows - restored).mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(outputs[:, 3], np.abs(rows - restored).mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(outputs[:, 4], np.square(rows).mean(axis=1), atol=1e-9)
    mean = (sum(losses[:3]) * 128 + sum(losses[3:]) * 316 / 3) / 700
    assert mean == pytest.approx(outputs[:, 2].mean(), rel=1e-4)


def test_a_training_goes_on_from_its_state_and_another_one_is_refused() -> None:
    whole, stopped, resumed = (
        ComponentsAdapter(LayerAdapter(PrincipalComponents(3, 8)), 0.7)  # type: ignore[arg-type]
        for _ in range(3)
    )
    train(whole, 0, 300)
    expected = train(whole, 300, 700)
    train(stopped, 0, 300)
    weights, state = stopped.cut()()
    resumed.set_weights(weights)
    resumed.set_state(state)
    np.testing.assert_array_equal(train(resumed, 300, 700), expected)
    for name, value in whole.get_weights().items():
        np.testing.assert_array_equal(value, resumed.get_weights()[name])
    with pytest.raises(JobError, match="it is of 3 inputs"):
        resumed.set_state(state | {"components.factor": np.zeros((5, 5))})


def test_a_model_without_components_is_refused() -> None:
    import torch

    with pytest.raises(JobError, match="the model has none"):
        ComponentsAdapter(LayerAdapter(torch.nn.Linear(2, 1)), None)  # type: ignore[arg-type]
