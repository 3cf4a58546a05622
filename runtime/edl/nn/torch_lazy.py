"""Optimizers of PyTorch that do not load its compiler, which takes as long as all the rest of PyTorch.

`torch.optim` imports the compiler when an optimizer is made and whenever it steps, only to keep both out of what is
compiled. Until somebody has loaded the compiler, nothing is compiled, and the methods do without.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

Method = Callable[..., Any]

COMPILER = "torch._dynamo"


@functools.cache
def spare_compiler() -> None:
    """Let optimizers be made, take steps, and show their state without the compiler, unless it is loaded already."""
    if COMPILER in sys.modules:
        return
    for name in ("add_param_group", "zero_grad", "state_dict", "load_state_dict"):
        _replace(Optimizer, name, inspect.unwrap)
    for kind in vars(torch.optim).values():
        if isinstance(kind, type) and issubclass(kind, Optimizer) and _keeps_gradients_out(kind):
            _replace(kind, "step", lambda step: torch.no_grad()(inspect.unwrap(step)))


def _keeps_gradients_out(kind: type[Optimizer]) -> bool:
    """Whether its step is wrapped by what asks the compiler, and chooses whether it is differentiable."""
    step = vars(kind).get("step")
    return getattr(step, "__name__", "") == "step" and step.__code__.co_name == "_use_grad"


def _replace(kind: type[Optimizer], name: str, without: Callable[[Method], Method]) -> None:
    whole = vars(kind)[name]
    bare = without(whole)

    @functools.wraps(whole)
    def method(self: Optimizer, *arguments: Any, **named: Any) -> Any:
        loaded = COMPILER in sys.modules
        return (whole if loaded or self.defaults.get("differentiable") else bare)(self, *arguments, **named)

    setattr(kind, name, method)
