"""Optimizers without PyTorch's compiler: it is not loaded, and nothing comes out otherwise."""

from __future__ import annotations

import subprocess
import sys

import pytest

STEPS = """
import sys
import torch
from edl import frameworks

frameworks.prepare("torch", 1)
MADE = {
    "adam": lambda p: torch.optim.Adam(p, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, amsgrad=True),
    "adagrad": lambda p: torch.optim.Adagrad(p),
    "rmsprop": lambda p: torch.optim.RMSprop(p, momentum=0.9),
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
}

def moved(make):
    parameter = torch.nn.Parameter(torch.linspace(-1, 1, 7))
    optimizer = make([parameter])
    for _ in range(3):
        optimizer.zero_grad()
        (parameter**2).sum().backward()
        optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step()
    return parameter.tolist()

before = {name: moved(make) for name, make in MADE.items()}
assert len({str(values) for values in before.values()}) == len(MADE)
print(*[name for name in sys.modules if name in ("torch._dynamo", "torch._inductor")])
"""
DIFFERENTIABLE = """
rate = torch.nn.Parameter(torch.ones(2))
parameter = rate.clone()
parameter.grad = 2 * parameter
torch.optim.SGD([parameter], 0.25, differentiable=True).step()
parameter.sum().backward()
assert rate.grad.tolist() == [0.5, 0.5]
"""
COMPILED = """
import torch._dynamo
assert before == {name: moved(make) for name, make in MADE.items()}
"""


UNCHANGED = """
from torch.optim import SGD, Optimizer
from edl import frameworks

before = dict(vars(Optimizer)), dict(vars(SGD))
frameworks.prepare("torch", 1, own_process=False)
assert before == (dict(vars(Optimizer)), dict(vars(SGD)))
"""


@pytest.mark.soak
def test_torch_stays_as_it_is_in_a_process_of_the_users() -> None:
    run = subprocess.run([sys.executable, "-c", UNCHANGED], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.soak
@pytest.mark.parametrize("more", ["", pytest.param(DIFFERENTIABLE + COMPILED, marks=pytest.mark.soak)])
def test_optimizers_do_without_the_compiler_what_they_do_with_it(more: str) -> None:
    script = STEPS + more
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr
