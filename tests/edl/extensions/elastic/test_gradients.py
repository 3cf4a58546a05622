"""Gradients of PyTorch in a group, on the CPU and on a device that is simulated."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from edl.arrays import Array
from edl.collectives.base import Group, GroupError
from edl.extensions.elastic.torch_optimizer import TorchGradients
from tests.edl.frameworks.simulated_device import DEVICE, Simulation

X = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))


class Twins:
    """Group of two members that compute the same. `sums` has the sizes of the sums."""

    size = 2

    def __init__(self) -> None:
        self.sums: list[int] = []

    def sum(self, array: Array) -> None:
        self.sums.append(len(array))
        array *= 2


class Lost:
    size = 2

    def sum(self, array: Array) -> None:
        raise GroupError("a member is lost")


class Network(nn.Sequential):
    """Layers with moving statistics, and a parameter that no loss depends on."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
        self.register_parameter("unused", nn.Parameter(torch.ones(2)))
        for number, parameter in enumerate(self.parameters()):
            nn.init.constant_(parameter, 0.1 * number)
        self.to(device)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        self.gradients = TorchGradients(self, self.optimizer)
        self.rows = X.to(device)

    def add(self, low: int, high: int, share: float) -> None:
        self(self.rows[low:high]).square().mean().backward()
        self.gradients.add(share)

    def numbers(self) -> dict[str, Any]:
        """Gradients and buffers, None for a gradient that is not there."""
        found = {name: each.grad for name, each in self.named_parameters()} | dict(self.named_buffers())
        return {name: None if each is None else each.detach().cpu().numpy() for name, each in found.items()}


def summed(device: torch.device, group: object) -> dict[str, Any]:
    """Gradients and buffers of a network after two micro-batches of a third of the rows of the step, and their sum."""
    network = Network(device)
    network.add(0, 4, 0.25)
    network.add(4, 6, 0.125)
    assert network.gradients.accumulated
    network.gradients.sum(cast("Group | None", group), 0.5)
    assert not network.gradients.accumulated
    for name, each in network.named_parameters():
        assert (each.grad is None) == (name == "unused")
        assert each.grad is None or each.grad.device.type == each.device.type
    network.optimizer.step()
    return network.numbers()


@pytest.mark.soak
@pytest.mark.parametrize("alone", [True, False])
def test_gradients_on_a_device_equal_the_cpus(alone: bool) -> None:
    group, other = (None, None) if alone else (Twins(), Twins())
    expected = summed(torch.device("cpu"), group)
    with Simulation():
        found = summed(DEVICE, other)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    if (
        group is not None and other is not None
    ):  # mark, flags, 8 + 4 + 3 + 2 parameters, two means and variances
        assert group.sums == other.sums == [1 + 7 + 17 + 4]


def test_gradients_are_weighted_by_rows_and_summed() -> None:
    alone = Network(torch.device("cpu"))
    alone.add(0, 4, 0.25)
    alone.gradients.sum(None, 1.0)
    for name, value in summed_once(Twins()).items():
        if name in dict(alone.named_parameters()) and value is not None:
            np.testing.assert_allclose(value, 2 * alone.numbers()[name], rtol=1e-6)


def summed_once(group: object) -> dict[str, Any]:
    network = Network(torch.device("cpu"))
    network.add(0, 4, 0.25)
    network.gradients.sum(cast(Group, group), 0.5)
    return network.numbers()


def test_a_lost_member_leaves_nothing_of_the_step() -> None:
    network = Network(torch.device("cpu"))
    before = network.numbers()
    network.add(0, 4, 0.25)
    with pytest.raises(GroupError):
        network.gradients.sum(cast(Group, Lost()), 0.5)
    network.gradients.discard()
    for name, value in network.numbers().items():
        if name != "1.num_batches_tracked":  # an integer, which counts what was computed
            np.testing.assert_array_equal(value, before[name])
    network.add(0, 4, 0.25)
    network.gradients.sum(cast(Group, Twins()), 0.5)
    for name, value in summed_once(Twins()).items():
        if name != "1.num_batches_tracked":
            np.testing.assert_array_equal(network.numbers()[name], value)
