"""Membership of a worker in all-reduce groups: requests the next group from the master and reports the present one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from edl.tasks.protocol import Flag, JoinRequest, WorkerGroup
from edl.tasks.task import Report
from edl.worker.master_client import RemoteTasks

LOOK_SECS = 0.2  # poll interval for having to leave while waiting for a group


class RendezvousClient:
    """Group membership of one worker, which exchanges messages with the master through `tasks`.

    While an evaluation round is open, no member trains: the next training task needs all of them.
    """

    def __init__(self, tasks: RemoteTasks) -> None:
        self._tasks = tasks
        self._outbox = tasks.outbox

    @property
    def name(self) -> str:
        return self._outbox.instance

    @property
    def regroup(self) -> bool:
        """True if the master wants the present group to end, or the job is over."""
        return self._outbox.regroup or bool(self._outbox.flags & Flag.FINISHED)

    @property
    def is_measuring(self) -> bool:
        """True if a round is open."""
        return bool(self._outbox.flags & (Flag.PENDING | Flag.MEASURING))

    @property
    def has_measured(self) -> bool:
        """True if the last answer of the master says that no round is open."""
        return self._outbox.informed and not self.is_measuring

    @property
    def is_acknowledged(self) -> bool:
        """True if the master has all reports, and its answer to them has come."""
        return self._outbox.informed and not self._outbox.is_unacknowledged

    @property
    def unstored_leases(self) -> set[int]:
        """Leases of done tasks with reports that the master may not have stored."""
        return self._outbox.unstored_leases

    def join(self, request: JoinRequest, leaving: Callable[[], bool]) -> WorkerGroup | None:
        """Wait for the next group; return None if there will be none or this worker has to leave.

        Raises RefusedError if the master has given this worker up.
        """
        tasks, outbox = self._tasks, self._outbox
        with tasks.awaiting():
            tasks.check()
            if tasks.is_disconnected or leaving():
                return None
            outbox.join(request)
            tasks.wake()
            try:
                while outbox.found is None and not (tasks.is_disconnected or leaving()):
                    tasks.check()
                    tasks.changed.wait(LOOK_SECS)
                tasks.check()
                return outbox.found
            finally:
                outbox.join_request = None

    def enter(self, group: int, tasks: Iterable[Report], reports: Iterable[Report], members: int) -> None:
        """Report that this worker has the parameters of the group, as one of so many `members` that ask for news.

        The leader passes the group's open `tasks` with their progress, and the `reports` that the master may not have
        stored.
        """
        with self._tasks.changed:
            self._outbox.enter(group, tasks, reports)
            self._outbox.informed = False
            self._tasks.on_enter(members)
            self._tasks.wake()

    def refresh(self) -> None:
        """Require a fresh answer of the master before concluding that there is nothing to do."""
        with self._tasks.changed:
            self._outbox.informed = False
