"""Exchange with the master for a worker in all-reduce groups: requests groups and reports the present one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from edl.tasks.protocol import Flag, JoinRequest, WorkerGroup
from edl.tasks.task import CONTROL, Report, TaskType
from edl.worker.master_client import RemoteTasks

LOOK_SECS = 0.2  # poll interval for having to leave while waiting for a group
HEAR_SECS = 0.2  # longest time until a member learns that others wait to join


class GroupMember(RemoteTasks):
    """Task source of one member. While a round is open, no member trains: the next training task needs all of them.

    `changed` is notified on every message from the master.
    """

    _control_flags = Flag.PENDING | Flag.MEASURING

    @property
    def changed(self) -> threading.Condition:
        return self._changed

    @property
    def name(self) -> str:
        return self._outbox.instance

    @property
    def regroup(self) -> bool:
        """True if the master wants the present group to end, or the job is over."""
        return self._outbox.regroup or bool(self._outbox.flags & Flag.FINISHED)

    @property
    def measuring(self) -> bool:
        """True if a round is open."""
        return bool(self._outbox.flags & self._control_flags)

    @property
    def unwritten(self) -> set[int]:
        """Leases of done tasks whose reports the master may not have stored."""
        return self._outbox.unwritten

    def seek(self, seek: JoinRequest, leaving: Callable[[], bool]) -> WorkerGroup | None:
        """Wait for the next group; return None if there will be none or this worker has to leave.

        Raises RefusedError if the master has given this worker up.
        """
        with self._changed:
            if self._disconnected or leaving():
                return None
            self._outbox.seeks(seek)
            self._awaiting += 1
            self._wake()
            try:
                while self._outbox.found is None and not (self._disconnected or leaving()):
                    self._check()
                    self._changed.wait(LOOK_SECS)
                self._check()
                return self._outbox.found
            finally:
                self._awaiting -= 1
                self._outbox.seek = None

    def enter(self, ring: int, tasks: Iterable[Report], told: Iterable[Report]) -> None:
        """Report that this worker has the parameters of the group.

        The leader passes the group's open `tasks` with their progress, and in `told` the reports that the master may
        not have stored.
        """
        with self._changed:
            self._outbox.enters(ring, tasks, told)
            self._outbox.informed = False
            self._wake()

    def refresh(self) -> None:
        """Require a fresh answer of the master before concluding that there is nothing to do."""
        with self._changed:
            self._outbox.informed = False

    def heard(self) -> bool:
        """Return True if the master has all reports, and its answer to them has come."""
        return self._outbox.informed and not self._outbox.unsaid

    @property
    def _longest_silence(self) -> float:
        return min(super()._longest_silence, HEAR_SECS)

    def _unavailable(self, types: tuple[TaskType, ...]) -> bool:
        """Return True if no task of these types can come; evaluations belong to a group, too."""
        return (types == CONTROL and self._outbox.regroup) or super()._unavailable(types)

    def check(self) -> None:
        """Raise RefusedError if the master has given this worker up."""
        with self._changed:
            self._check()
