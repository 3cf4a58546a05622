"""Deep embedded clustering in PyTorch: the autoencoder, and the targets of the soft assignments."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from edl.frameworks.torch.clusters import dense, pretrain
from edl.torch import ClusterTargets, DeepClusters


@pytest.mark.soak
@pytest.mark.parametrize("rate", [0.1, 1000.0])
def test_a_rate_that_is_too_high_is_lowered_until_the_error_falls(rate: float) -> None:
    torch.manual_seed(0)
    rows = torch.randn(64, 1) @ torch.randn(1, 6)  # a line, which one number describes
    autoencoder = nn.Sequential(dense(6, 8, 1), dense(1, 8, 6))
    before = nn.functional.mse_loss(autoencoder(rows), rows)

    pretrain(autoencoder, rows, epochs=40, rate=rate)
    assert nn.functional.mse_loss(autoencoder(rows), rows) < 0.7 * before


@pytest.mark.soak
def test_a_sure_row_is_nearer_to_its_target_than_an_unsure_one_and_large_clusters_count_less() -> None:
    targets = ClusterTargets(2)
    sure, unsure = targets.eval()(torch.tensor([[0.0, 100.0], [1.0, 2.0]]))
    assert 0 <= sure < unsure

    targets.train()(torch.tensor([[0.0, 9.0]]).expand(4096, 2))
    torch.testing.assert_close(targets.sizes, torch.tensor([10 / 11, 1 / 11]))
    assert targets.eval()(torch.tensor([[1.0, 1.0]])) > 0  # its target is the smaller one


def test_the_first_rows_give_codes_and_centres() -> None:
    torch.manual_seed(0)
    truth = torch.arange(120) % 3
    rows = torch.tensor([[0.0, 9.0], [9.0, 0.0], [-9.0, -9.0]])[truth] + torch.randn(120, 2)
    model = DeepClusters(3, 2, dims=(8, 2), pretrain_epochs=10, pretrain_lr=0.1, starts=4)

    nearest = model(rows).argmin(dim=1)
    assert len({(int(a), int(b)) for a, b in zip(truth, nearest, strict=True)}) == 3
    assert all(parameter.grad is None for parameter in model.parameters())
