"""An optimizer's steps, without what `torch.optim` does around the arithmetic.

`step` asks for hooks, opens a profiler's record, looks up the state of each parameter and sorts tensors by device,
every time: for a small model that takes as long as a layer. The fused kernel of Adam and AdamW is called with lists
that are made once, and gives the same bits; the optimizer's counts of steps are made parts of one tensor, so that they
are one addition. Whatever is not as plain as that is left to `step`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.optim import optimizer as torch_optimizer

_KERNELS = {torch.optim.Adam: torch._fused_adam_, torch.optim.AdamW: torch._fused_adamw_}


class _Group(NamedTuple):
    """Parameters with their slots. settings: the optimizer's own dict, where a rate may change between two steps.

    counts: of the steps taken, float32 (parameters,). steps: the same, as the kernel takes them.
    """

    settings: dict[str, Any]
    parameters: list[torch.Tensor]
    first_moments: list[torch.Tensor]
    second_moments: list[torch.Tensor]
    largest: list[torch.Tensor]  # second moments, of AMSGrad
    counts: torch.Tensor
    steps: list[torch.Tensor]


class Steps:
    """Takes the steps of one optimizer."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._kernel = _KERNELS.get(type(optimizer))
        self._groups: list[_Group] = []
        optimizer.register_load_state_dict_post_hook(lambda _: self._groups.clear())

    def take(self) -> None:
        """A step with the gradients that the parameters have."""
        if self._kernel is None or self._has_hooks:
            self._optimizer.step()
            return
        gradients = [[parameter.grad for parameter in group.parameters] for group in self._groups]
        known = 0 < len(self._groups) == len(self._optimizer.param_groups)
        if known and all(gradient is not None for given in gradients for gradient in given):
            self._apply(self._kernel, gradients)
            return
        self._optimizer.step()  # makes slots that are missing
        self._groups = list(_groups(self._optimizer))

    @property
    def _has_hooks(self) -> bool:
        """Whether something else belongs to a step. It may come at any time; schedulers of rates wrap `step` itself."""
        mine = self._optimizer
        return bool(
            mine._optimizer_step_pre_hooks
            or mine._optimizer_step_post_hooks
            or torch_optimizer._global_optimizer_pre_hooks
            or torch_optimizer._global_optimizer_post_hooks
            or "step" in vars(mine)
        )

    def _apply(self, kernel: Callable[..., Any], gradients: list[list[torch.Tensor | None]]) -> None:
        with torch.no_grad():
            for group, given in zip(self._groups, gradients, strict=True):
                settings = group.settings
                group.counts.add_(1)
                kernel(
                    group.parameters,
                    given,
                    group.first_moments,
                    group.second_moments,
                    group.largest,
                    group.steps,
                    lr=settings["lr"],
                    beta1=settings["betas"][0],
                    beta2=settings["betas"][1],
                    weight_decay=settings["weight_decay"],
                    eps=settings["eps"],
                    amsgrad=settings["amsgrad"],
                    maximize=settings["maximize"],
                )


def _groups(optimizer: torch.optim.Optimizer) -> Iterator[_Group]:
    """The groups that are as the kernel takes them; the others are left out."""
    decoupled = type(optimizer) is torch.optim.AdamW
    for settings in optimizer.param_groups:
        if not settings["fused"] or settings.get("decoupled_weight_decay", decoupled) != decoupled:
            continue
        parameters = settings["params"]
        states = [optimizer.state.get(parameter) for parameter in parameters]
        if all(states) and len({parameter.dtype for parameter in parameters}) == 1:
            first, second = [[state[name] for state in states] for name in ("exp_avg", "exp_avg_sq")]
            largest = [state["max_exp_avg_sq"] for state in states] if settings["amsgrad"] else []
            counts = torch.stack([state["step"] for state in states])
            steps = list(counts.unbind())
            for state, step in zip(states, steps, strict=True):
                state["step"] = step
            yield _Group(settings, parameters, first, second, largest, counts, steps)
