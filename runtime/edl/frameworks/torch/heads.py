"""Outputs of a model of several labels, side by side in one tensor."""

from __future__ import annotations

from typing import Any

import torch

from edl.features import SeveralTarget
from edl.frameworks.heads import in_order


def joined(outputs: Any, label: SeveralTarget) -> torch.Tensor:
    """Return the outputs of a user's model as one tensor, (rows, outputs).

    It gives that tensor, one per label in their order, or a dict of one per label by the name of its column. Raises
    JobError for another form.
    """
    if isinstance(outputs, torch.Tensor):
        return outputs
    return torch.cat([tensor.reshape(len(tensor), -1) for tensor in in_order(outputs, label.spec)], dim=1)


def rescaled(outputs: torch.Tensor, label: SeveralTarget) -> torch.Tensor:
    """Return the outputs in the units of the labels: times the deviation of each number, plus its mean."""
    std, mean = (torch.tensor(values, device=outputs.device) for values in (label.std, label.mean))
    return outputs * std + mean
