"""Outputs of a user's model of several labels, as the model gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edl.errors import JobError
from edl.spec import SeveralLabels


def in_order(outputs: Any, label: SeveralLabels) -> list[Any]:
    """Return a tensor for each label, from a dict by column or a sequence. Raises JobError for another form.

    The number of outputs of each is checked too.
    """
    names = [one_label.column for one_label in label.labels]
    shapes = ", ".join(f"{one_label.column} (rows, {one_label.outputs})" for one_label in label.labels)
    hint = f"give a dict, or one tensor for each label: {shapes}"
    if isinstance(outputs, Mapping):
        if outputs.keys() != set(names):
            raise JobError(f"the model gives outputs {', '.join(map(str, outputs))}", hint=hint)
        outputs = [outputs[name] for name in names]
    if not isinstance(outputs, list | tuple) or len(outputs) != len(names):
        what = (
            f"{len(outputs)} outputs" if isinstance(outputs, list | tuple) else f"a {type(outputs).__name__}"
        )
        raise JobError(f"the model gives {what} for {len(names)} labels", hint=hint)
    for one_label, output in zip(label.labels, outputs, strict=True):
        width = output.shape[1] if len(output.shape) == 2 else 1
        if len(output.shape) > 2 or width != one_label.outputs:
            raise JobError(
                f"the model gives {one_label.column} an output of the shape {tuple(output.shape)}", hint=hint
            )
    return list(outputs)
