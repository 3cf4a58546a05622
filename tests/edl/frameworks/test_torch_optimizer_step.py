"""Steps of PyTorch's optimizers by their kernels: the bits of `step`, and nothing left out that belongs to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from edl.frameworks.torch.optimizer_step import OptimizerSteps

Make = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]


def _parameters() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    shapes = [(3, 5), (5,), (2, 2)]
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def _set_gradients(parameters: list[torch.nn.Parameter], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def _numbers(parameters: list[torch.nn.Parameter], optimizer: torch.optim.Optimizer) -> list[Any]:
    slots = optimizer.state_dict()["state"].values()
    return [p.tolist() for p in parameters] + [value.tolist() for slot in slots for value in slot.values()]


def _after(
    make: Make, take: Callable[[torch.optim.Optimizer], Callable[[], Any]], steps: int = 5
) -> list[Any]:
    """Parameters and slots after some steps, between which the rate changes."""
    parameters = _parameters()
    optimizer = make(parameters)
    step = take(optimizer)
    for number in range(steps):
        _set_gradients(parameters, number)
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + number)
        step()
    return _numbers(parameters, optimizer)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[torch.optim.Optimizer]:
    """The optimizers of the calls of Adam's own step."""
    found: list[torch.optim.Optimizer] = []
    step = torch.optim.Adam.step

    def counted(self: torch.optim.Adam) -> Any:
        found.append(self)
        return step(self)

    monkeypatch.setattr(torch.optim.Adam, "step", counted)
    return found


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.Adam(p, fused=True),
        lambda p: torch.optim.Adam(p, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1, fused=True),
        lambda p: torch.optim.Adam(p, amsgrad=True, maximize=True, fused=True),
        lambda p: torch.optim.AdamW(p, weight_decay=0.1, fused=True),
        lambda p: torch.optim.Adam([{"params": p[:1]}, {"params": p[1:], "lr": 0.5}], fused=True),
        lambda p: torch.optim.Adam(p),
        lambda p: torch.optim.SGD(p, momentum=0.9, fused=True),
    ],
    ids=["adam", "settings", "amsgrad", "adamw", "groups", "not fused", "sgd"],
)
def test_steps_give_the_bits_of_the_optimizers_own(make: Make) -> None:
    taken = _after(make, lambda optimizer: OptimizerSteps(optimizer).take)
    assert taken == _after(make, lambda optimizer: optimizer.step)
    assert taken != _after(make, lambda optimizer: optimizer.step, steps=4)


def test_only_the_first_step_is_the_optimizers_own(calls: list[torch.optim.Optimizer]) -> None:
    _after(lambda p: torch.optim.Adam(p, fused=True), lambda optimizer: OptimizerSteps(optimizer).take)
    assert len(calls) == 1


def test_a_parameter_without_a_gradient_stays() -> None:
    parameters = _parameters()
    optimizer = torch.optim.Adam(parameters, 0.1, fused=True)
    steps = OptimizerSteps(optimizer)
    for seed in range(2):
        _set_gradients(parameters, seed)
        steps.take()
    before = [parameter.tolist() for parameter in parameters]
    _set_gradients(parameters, 2)
    parameters[1].grad = None
    steps.take()
    stayed = [parameter.tolist() == was for parameter, was in zip(parameters, before, strict=True)]
    assert stayed == [False, True, False]


def test_slots_that_are_loaded_are_gone_on_from() -> None:
    def make(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, fused=True)

    def reloading(optimizer: torch.optim.Optimizer) -> Callable[[], None]:
        steps = OptimizerSteps(optimizer)

        def take() -> None:
            steps.take()
            optimizer.load_state_dict(optimizer.state_dict())

        return take

    assert _after(make, reloading) == _after(make, lambda optimizer: optimizer.step)


def test_a_group_that_is_added_moves_too() -> None:
    parameters = _parameters()
    optimizer = torch.optim.Adam(parameters[:2], 0.1, fused=True)
    steps = OptimizerSteps(optimizer)
    for number in range(3):
        _set_gradients(parameters, number)
        steps.take()
        if number == 0:
            optimizer.add_param_group({"params": parameters[2:]})
    assert [int(optimizer.state[parameter]["step"]) for parameter in parameters] == [3, 3, 2]


def test_a_hook_that_comes_later_is_called() -> None:
    parameters = _parameters()
    optimizer = torch.optim.Adam(parameters, fused=True)
    steps = OptimizerSteps(optimizer)
    called = []
    for number in range(4):
        _set_gradients(parameters, number)
        steps.take()
        if number == 1:
            optimizer.register_step_post_hook(lambda *_: called.append(True))
    assert len(called) == 2


def test_a_scheduler_of_rates_sees_the_steps(calls: list[torch.optim.Optimizer]) -> None:
    parameters = _parameters()
    optimizer = torch.optim.Adam(parameters, fused=True)
    steps = OptimizerSteps(optimizer)
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for number in range(3):
        _set_gradients(parameters, number)
        steps.take()
    assert len(calls) == 3
