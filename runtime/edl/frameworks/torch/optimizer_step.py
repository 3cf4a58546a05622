"""Optimizer steps without the overhead of `torch.optim`.

`step` calls hooks, opens a profiler record, looks up the state of each parameter and sorts tensors by device, every
time: for a small model that takes as long as a layer. Here the fused kernel of Adam and AdamW is called with lists
that are made once, with bitwise equal results; the step counts become parts of one tensor, so that one addition
increments them. Any other case is left to `step`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.optim import optimizer as torch_optimizer

_KERNELS = {torch.optim.Adam: torch._fused_adam_, torch.optim.AdamW: torch._fused_adamw_}


class _ParameterGroup(NamedTuple):
    """Parameters with their slots. `settings` is the optimizer's own dict; its rate may change between two steps.

    `counts` has the numbers of steps, float32 (parameters,); `steps` has the same as views for the kernel.
    """

    settings: dict[str, Any]
    parameters: list[torch.Tensor]
    first_moments: list[torch.Tensor]
    second_moments: list[torch.Tensor]
    largest: list[torch.Tensor]  # maximum of second moments, for AMSGrad
    counts: torch.Tensor
    steps: list[torch.Tensor]


class OptimizerSteps:
    """Steps of one optimizer."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._kernel = _KERNELS.get(type(optimizer))
        self._groups: list[_ParameterGroup] = []
        optimizer.register_load_state_dict_post_hook(lambda _: self._groups.clear())

    def take(self) -> None:
        """Take a step with the present gradients of the parameters."""
        if self._kernel is None or self._has_hooks:
            self._optimizer.step()
            return
        gradients = [[parameter.grad for parameter in group.parameters] for group in self._groups]
        has_all_groups = 0 < len(self._groups) == len(self._optimizer.param_groups)
        if has_all_groups and all(
            gradient is not None for group_gradients in gradients for gradient in group_gradients
        ):
            self._apply(self._kernel, gradients)
            return
        self._optimizer.step()  # creates missing slots
        self._groups = list(_groups(self._optimizer))

    @property
    def _has_hooks(self) -> bool:
        """Return True if a hook or wrapper belongs to a step. It may be added at any time; rate schedulers wrap
        `step`.
        """
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
            for group, group_gradients in zip(self._groups, gradients, strict=True):
                settings = group.settings
                group.counts.add_(1)
                kernel(
                    group.parameters,
                    group_gradients,
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


def _groups(optimizer: torch.optim.Optimizer) -> Iterator[_ParameterGroup]:
    """Return the parameter groups that fit the kernel; the others are left out."""
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
            yield _ParameterGroup(settings, parameters, first, second, largest, counts, steps)
