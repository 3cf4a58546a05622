"""TiDE in PyTorch: where its linear part begins, unknown values, and the loss of its quantiles."""

from __future__ import annotations

import pytest
import torch

from edl.frameworks.torch.tide import quantile_losses, seasonal_naive
from edl.torch import TiDE


def test_the_linear_part_begins_as_the_mean_of_the_same_places_of_earlier_seasons() -> None:
    past = torch.arange(6, 0, -1, dtype=torch.float32)  # the latest value first: 6, 5, …, 1

    assert (seasonal_naive(6, 4, season=3) @ past).tolist() == [2.5, 3.5, 4.5, 2.5]


@pytest.mark.parametrize(("lags", "season"), [(6, 1), (2, 3)])
def test_without_a_whole_season_it_begins_as_the_last_value(lags: int, season: int) -> None:
    past = torch.arange(lags, 0, -1, dtype=torch.float32)

    assert (seasonal_naive(lags, 2, season) @ past).tolist() == [lags, lags]


def test_an_unknown_value_is_the_level_and_each_row_has_the_outputs_of_its_own_step() -> None:
    network = TiDE(lags=4, horizon=3, known=2, outputs=2, season=2, hidden_size=8, layers=2).eval()
    past, known = torch.randn(3, 4), torch.randn(3, 2)
    past[1] = torch.tensor([0.0, 1.0, 0.0, 2.0])
    gaps = past.where(past != 0, torch.nan)
    steps = torch.tensor([[1.0], [2.0], [3.0]])

    found = network(past, steps, known)
    assert found.shape == (3, 2)
    assert torch.equal(network(gaps, steps, known), found)
    assert not torch.equal(network(past, steps.flip(0), known)[0], found[0])
    assert torch.equal(network(past, steps.flip(0), known)[1], found[1])


@pytest.mark.soak
def test_the_loss_of_a_quantile_weighs_values_above_and_below_it() -> None:
    losses = quantile_losses(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), [0.1, 0.9])

    torch.testing.assert_close(losses, torch.tensor([[0.1, 0.9], [0.9, 0.1]]))
