"""First centres of clusters."""

from __future__ import annotations

import pytest
import torch
from sklearn.cluster import KMeans

from edl.frameworks.torch.clusters import Centres, first_centres, squared_distances


@pytest.mark.soak
def test_the_start_is_as_good_as_the_library_s() -> None:
    torch.manual_seed(3)
    rows = torch.randn(300, 4) + 4 * torch.randint(0, 3, (300, 1))

    centres = first_centres(rows, 5)

    own = float(squared_distances(rows, centres).min(dim=1).values.sum())
    theirs = KMeans(5, n_init=10, random_state=0).fit(rows.numpy()).inertia_
    assert own <= 1.1 * theirs


def test_equal_rows_give_centres_too() -> None:
    distances = Centres(3, 2)(torch.ones(2, 2))

    assert distances.shape == (2, 3)
    assert float(distances.detach().abs().max()) == 0
