"""Contract between the all-reduce strategy and its task source: group membership and position in the task log.

Parameters and log position belong together: a worker that takes a member's parameters continues at that member's
position. So the strategy transfers both, between two of its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from edl.collectives.base import Store
from edl.tasks.protocol import WorkerGroup
from edl.tasks.task import Report


class Rendezvous(Protocol):
    """Rendezvous of one worker. Its methods are called by the training thread."""

    def next_group(self, done: Report | None = None) -> WorkerGroup:
        """Wait for the next group.

        `done` is the progress of the assigned task up to its last step, or None if no call of `Strategy.train` is open.
        If the group has no holders, its first member has loaded the checkpoint's parameters before this returns. Raises
        RefusedError or VoidError if there will be no group or this worker has to leave.
        """
        ...

    def position(self) -> bytes:
        """Return the encoded position in the task log."""
        ...

    def follow(self, position: bytes, group: WorkerGroup, store: Store, rank: int) -> None:
        """Continue at the position that matches the group's parameters. Tasks assigned before become invalid."""
        ...

    @property
    def regroup(self) -> bool:
        """True if this worker has no group, or has to leave it before the next minibatch."""
        ...

    def leave_out(self, members: Sequence[str]) -> None:
        """Request the next group without these members, which are far slower than the others."""
        ...
