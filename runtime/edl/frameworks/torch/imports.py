"""Import of torch.optim without torch._dynamo: that would double the import time.

`torch.optim` imports the compiler when an optimizer is created and at every step, only to exclude both from
compilation. As long as the compiler is not imported, nothing is compiled, so the methods work without it.
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
def skip_compiler_import() -> None:
    """Let optimizers be created, take steps and return their state without the compiler, unless it is imported
    already.
    """
    if COMPILER in sys.modules:
        return
    for name in ("add_param_group", "zero_grad", "state_dict", "load_state_dict"):
        _replace(Optimizer, name, inspect.unwrap)
    for kind in vars(torch.optim).values():
        if isinstance(kind, type) and issubclass(kind, Optimizer) and _has_use_grad_wrapper(kind):
            _replace(kind, "step", lambda step: torch.no_grad()(inspect.unwrap(step)))


def _has_use_grad_wrapper(kind: type[Optimizer]) -> bool:
    """Return True if the optimizer's step has the wrapper that consults the compiler and controls differentiability."""
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
