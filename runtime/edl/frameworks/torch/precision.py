"""Mixed precision in PyTorch: a network in 16 bits with weights, losses and gradients in float32, and the scale of the
loss that float16 needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from edl.arrays import Array
from edl.errors import JobError
from edl.spec import JobSpec
from edl.spec.job import Precision
from edl.spec.precision import FLOAT16_ON_CPU

_TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
_SCALE, _GOOD_STEPS = "loss_scale", "loss_scale.steps"  # in a checkpoint
FIRST, GROWTH, STEPS_TO_GROW = 65536.0, 2.0, 2000  # as torch.amp.GradScaler's


def choose_precision(spec: JobSpec, device: torch.device) -> Precision:
    """Return the precision of a job. On the CPU a model that was trained in float16 is used in float32.

    Raises JobError for a training in float16 on the CPU.
    """
    if spec.precision != "float16" or device.type != "cpu":
        return spec.precision
    if spec.kind == "train":
        raise JobError(FLOAT16_ON_CPU[0], hint=FLOAT16_ON_CPU[1])
    return "float32"


def network(model: nn.Module, precision: Precision, device: torch.device) -> nn.Module | Autocast:
    """Return the model as a function of its features that computes in this precision."""
    return model if precision == "float32" else Autocast(model, device.type, _TYPES[precision])


class Autocast:
    """Network in 16 bits where PyTorch holds that for safe, with outputs in float32."""

    def __init__(self, model: nn.Module, kind: str, dtype: torch.dtype) -> None:
        self._model, self._kind, self._dtype = model, kind, dtype

    def __call__(self, features: Any) -> Any:
        with torch.autocast(self._kind, self._dtype):
            outputs = self._model(features)
        return outputs.float() if isinstance(outputs, torch.Tensor) else outputs


class LossScale:
    """Scale of the loss, so that small gradients are numbers of float16 (Micikevicius et al., 2018).

    It grows while steps succeed. If its gradients have overflowed, a step is left out, and the scale shrinks. Members
    of a group see the same sum of gradients, so they leave out the same steps and have the same scale.
    """

    def __init__(self) -> None:
        self._scale, self._good_steps = FIRST, 0

    def backward(self, loss: torch.Tensor, share: float) -> None:
        """Compute the gradients of the loss times scale and share."""
        loss.backward(torch.full_like(loss, self._scale * share))

    def unscale(self, gradients: Sequence[torch.Tensor]) -> None:
        torch._foreach_mul_(list(gradients), 1 / self._scale)

    def passes(self, gradients: Sequence[torch.Tensor]) -> bool:
        """Return True if a step can be taken with these gradients, and adapt the scale."""
        norms = torch.stack(torch._foreach_norm(list(gradients), float("inf")))
        if not bool(norms.isfinite().all()):
            self._scale, self._good_steps = self._scale / GROWTH, 0
            return False
        self._good_steps += 1
        if self._good_steps == STEPS_TO_GROW:
            self._scale, self._good_steps = self._scale * GROWTH, 0
        return True

    def get_state(self) -> dict[str, Array]:
        return {_SCALE: np.array(self._scale), _GOOD_STEPS: np.array(self._good_steps)}

    def set_state(self, state: Mapping[str, Array]) -> None:
        """Set the scale, unless the state belongs to another precision."""
        self._scale = float(state.get(_SCALE, FIRST))
        self._good_steps = int(state.get(_GOOD_STEPS, 0))
