"""Sums over a group, each with a mark of its kind: workers with different loops would add up different things."""

from __future__ import annotations

from edl.arrays import Array
from edl.collectives.base import Group
from edl.errors import JobError

STEP, EVALUATION, BROADCAST, END = 1.0, 1e2, 1e4, 1e6  # exact in float32; no mixture has the mean of another
_NAMES = {
    STEP: "takes a step",
    EVALUATION: "evaluates",
    BROADCAST: "calls edl.elastic.broadcast",
    END: "has left the loop",
}


def sum_over_group(group: Group, kind: float, flat: Array) -> None:
    """Replace `flat` by its sum over the group; its first element is for the mark.

    Raises GroupError if a member is lost, and JobError if one is not at the same point of the script.
    """
    flat[0] = kind
    group.sum(flat)
    if flat[0] != kind * group.size:
        raise JobError(
            f"this worker {_NAMES[kind]}, and another one is at another point of the script",
            hint="what a worker decides by the time, or by what it alone knows, goes through edl.elastic.broadcast",
        )
