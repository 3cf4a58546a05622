"""Isolation forests beside scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest as Theirs
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from edl.frameworks.torch.isolation_forest import IsolationForest, average_path


def tumours() -> tuple[np.ndarray, np.ndarray]:
    """Benign ones and a few malignant ones, standardized; the latter are the anomalies."""
    data = load_breast_cancer()
    kept = np.flatnonzero((data.target == 1) | (np.arange(len(data.target)) % 7 == 0))
    return StandardScaler().fit_transform(data.data[kept]).astype(np.float32), data.target[kept] == 0


def clusters() -> tuple[np.ndarray, np.ndarray]:
    """Two dense groups and rows everywhere between them."""
    generator = np.random.default_rng(4)
    dense = generator.normal(size=(900, 5)) * 0.4 + generator.integers(0, 2, (900, 1)) * 3
    rows = np.concatenate([dense, generator.uniform(-3, 6, (50, 5))]).astype(np.float32)
    return rows, np.arange(len(rows)) >= 900


@pytest.mark.soak
@pytest.mark.parametrize("table", [tumours, pytest.param(clusters, marks=pytest.mark.soak)])
def test_anomalies_are_found_as_well_as_by_the_library(table: object) -> None:
    rows, unusual = table()  # type: ignore[operator]
    torch.manual_seed(1)
    forest = IsolationForest(100, 256, rows.shape[1], 0.1)

    margins = forest(torch.from_numpy(rows)).detach().numpy()[:, 0]

    theirs = -Theirs(n_estimators=100, random_state=0).fit(rows).score_samples(rows)
    own = roc_auc_score(unusual, margins)
    assert own == pytest.approx(roc_auc_score(unusual, theirs), abs=0.03)
    assert np.corrcoef(np.argsort(np.argsort(margins)), np.argsort(np.argsort(theirs)))[0, 1] > 0.9
    assert (margins > 0).mean() == pytest.approx(0.1, abs=0.005)


def test_scores_equal_the_articles() -> None:
    """Scores of one tree over four rows in a line: paths are the numbers of splits, and c(2) where rows are left."""
    torch.manual_seed(0)
    rows = torch.tensor([[0.0], [1.0], [2.0], [100.0]])
    forest = IsolationForest(1, 4, 1, 0.25)
    scores = torch.sigmoid(forest(rows) + forest.threshold).squeeze(1).detach().numpy()
    paths = -np.log2(scores) * average_path(np.array(4))
    assert paths[3] == pytest.approx(1, abs=1e-5), "the row apart is alone after a split"
    assert sorted(np.round(paths[:3], 4)) == [2, 3, 3]
    np.testing.assert_allclose(average_path(np.array([1, 2, 256])), [0, 1, 10.2448], atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_equal_rows_are_no_anomalies(count: int) -> None:
    margins = IsolationForest(10, 256, 3, 0.1)(torch.ones(count, 3)).detach()

    assert margins.shape == (count, 1)
    assert bool(torch.isfinite(margins).all())
    assert not bool((margins > 0).any())


def test_equal_seeds_give_equal_trees() -> None:
    rows = torch.randn(500, 4)
    forests = []
    for _ in range(2):
        torch.manual_seed(9)
        forests.append(IsolationForest(5, 64, 4, 0.1))
        forests[-1](rows)
    assert all(
        torch.equal(a, b) for a, b in zip(*(each.state_dict().values() for each in forests), strict=True)
    )
