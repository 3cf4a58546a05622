"""Outputs of a user's model of several labels, side by side in one tensor."""

from __future__ import annotations

from typing import Any

import keras

from edl.features import SeveralTarget
from edl.frameworks.heads import in_order


def joined(outputs: Any, label: SeveralTarget) -> Any:
    """Return the outputs of a user's model as one tensor, (rows, outputs).

    It gives that tensor, one per label in their order, or a dict of one per label by the name of its column. Raises
    JobError for another form.
    """
    if not isinstance(outputs, dict | list | tuple):
        return outputs
    tensors = in_order(outputs, label.spec)
    return keras.layers.Concatenate()(
        [tensor if len(tensor.shape) == 2 else tensor[:, None] for tensor in tensors]
    )
