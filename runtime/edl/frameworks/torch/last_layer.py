"""The inputs of a network's last linear layer: the embedding of each row."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from edl.frameworks.torch.layers import MemberOutputs
from edl.frameworks.torch.real_mlp import NTPLinear

_LINEAR = (nn.Linear, MemberOutputs, NTPLinear)


@contextlib.contextmanager
def last_inputs(model: nn.Module) -> Iterator[list[torch.Tensor]]:
    """Yield a list that forward passes fill with the inputs of the linear layers, in the order in which they run.

    If the model calls a layer `output`, as the compiler's models do, it is the last one, and the others are ignored.
    """
    captured: list[torch.Tensor] = []

    def take(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        captured[:] = inputs[:1]

    output = getattr(model, "output", None)
    layers = (
        [output] if isinstance(output, _LINEAR) else [m for m in model.modules() if isinstance(m, _LINEAR)]
    )
    with contextlib.ExitStack() as hooks:
        for layer in layers:
            hooks.callback(layer.register_forward_pre_hook(take).remove)
        yield captured
