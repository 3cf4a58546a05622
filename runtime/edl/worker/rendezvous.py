"""What the strategy of a ring asks of its task source: who trains together, and where their tasks stand.

The parameters and the place in the tasks belong together: whoever takes a member's parameters goes on where that member
was. So the strategy moves both, and says at which of its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from edl.nn.collective import Store
from edl.tasks.exchange import Ring
from edl.tasks.task import Report


class Rendezvous(Protocol):
    """Methods are called by the thread that trains."""

    def next_ring(self, done: Report | None = None) -> Ring:
        """Wait for the ring that follows. RefusedError, VoidError: there will be none, or this worker has to go.

        done: of the task in hands, as the strategy was given it, up to its last step; None when no call of
        `Strategy.train` is open. Before it returns a ring without holders to the first member, that one has taken the
        parameters of the cut.
        """
        ...

    def course(self) -> bytes:
        """Where the tasks stand."""
        ...

    def follow(self, course: bytes, ring: Ring, store: Store, rank: int) -> None:
        """This worker has the ring's parameters, and `course` is where they are: go on from there.

        What was handed out before is not valid any more.
        """
        ...

    @property
    def regroup(self) -> bool:
        """Whether this worker is to leave its ring before the next minibatch, or has none."""
        ...

    def leave_out(self, members: Sequence[str]) -> None:
        """Ask the next ring to do without these, which are far slower than the others."""
        ...
