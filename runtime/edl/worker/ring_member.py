"""The exchange with the master of a worker that trains in rings: it seeks a ring, and says which one it is in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from edl.tasks.exchange import Flag, Ring, Seek
from edl.tasks.task import ASIDE, Report, TaskType
from edl.worker.remote import RemoteTasks

LOOK_SECS = 0.2  # after which who waits for a ring sees that it has to go
HEAR_SECS = 0.2  # after which a member hears that others wait to join


class RingMember(RemoteTasks):
    """While a round is open, everybody stays aside: the next training task is all members'.

    changed: notified with whatever comes from the master.
    """

    _keeps_aside = Flag.PENDING | Flag.MEASURING

    @property
    def changed(self) -> threading.Condition:
        return self._changed

    @property
    def name(self) -> str:
        return self._mailbox.instance

    @property
    def regroup(self) -> bool:
        """Whether the master wants the present ring to end, or the job is over."""
        return self._mailbox.regroup or bool(self._mailbox.flags & Flag.FINISHED)

    @property
    def measuring(self) -> bool:
        """Whether a round is open."""
        return bool(self._mailbox.flags & self._keeps_aside)

    @property
    def unwritten(self) -> set[int]:
        """Leases of the tasks whose reports the master may not have written down."""
        return self._mailbox.unwritten

    def seek(self, seek: Seek, leaving: Callable[[], bool]) -> Ring | None:
        """Wait for the next ring; None: there will be none, or this worker has to go. RefusedError: it is given up."""
        with self._changed:
            if self._over_and_out or leaving():
                return None
            self._mailbox.seeks(seek)
            self._awaiting += 1
            self._poke()
            try:
                while self._mailbox.found is None and not (self._over_and_out or leaving()):
                    self._check()
                    self._changed.wait(LOOK_SECS)
                self._check()
                return self._mailbox.found
            finally:
                self._awaiting -= 1
                self._mailbox.seek = None

    def enter(self, ring: int, tasks: Iterable[Report], told: Iterable[Report]) -> None:
        """This worker has the parameters of the ring. tasks, told: of who leads it, what the ring has in hands and how
        far, and what the master may not have written down."""
        with self._changed:
            self._mailbox.enters(ring, tasks, told)
            self._mailbox.informed = False
            self._poke()

    def inform(self) -> None:
        """Have the master's last word before anybody concludes from it that there is nothing to do."""
        with self._changed:
            self._mailbox.informed = False

    def heard(self) -> bool:
        """Whether the master counts all that was told, and what follows from it is known."""
        return self._mailbox.informed and not self._mailbox.unsaid

    @property
    def _longest_silence(self) -> float:
        return min(super()._longest_silence, HEAR_SECS)

    def _vain(self, types: tuple[TaskType, ...]) -> bool:
        """Evaluations, too, are of a ring."""
        return (types == ASIDE and self._mailbox.regroup) or super()._vain(types)

    def check(self) -> None:
        """RefusedError: the master does not want this worker any more."""
        with self._changed:
            self._check()
