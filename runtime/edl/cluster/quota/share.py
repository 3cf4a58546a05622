"""Supervisor's part in a quota: it checks the quota ten times a second and limits the instances of its job."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from edl.cluster import Room
from edl.cluster.local.instances import Instances
from edl.cluster.quota.quota import Membership, Quota
from edl.errors import ClusterError
from edl.jobs.cluster_folder import QuotaUse

INTERVAL = 0.1  # seconds


class Share:
    """Slots of one job. `notify` is called when the limit of instances changes."""

    def __init__(
        self,
        membership: Membership,
        instances: Instances,
        notify: Callable[[Room], None],
        say: Callable[[str], None],
    ) -> None:
        self._membership = membership
        self._instances = instances
        self._notify = notify
        self._say = say
        self._trouble = ""

    async def keep(self) -> None:
        """Check the quota until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(INTERVAL)

    def look(self) -> None:
        """Take and return slots; keep the present ones if the quota cannot be used."""
        try:
            slots = self._membership.turn(self._instances.alive_count, self._instances.wanted)
        except ClusterError as error:
            if error.message != self._trouble:
                self._trouble = error.message
                self._say(error.message)
            return
        self._trouble = ""
        if (room := Room(slots)) != self._instances.room:
            self._say(f"slots: {slots}")
            self._instances.room = room
            self._notify(room)


@contextlib.asynccontextmanager
async def sharing(
    use: QuotaUse | None,
    job: str,
    instances: Instances,
    notify: Callable[[Room], None],
    say: Callable[[str], None],
) -> AsyncIterator[None]:
    """Give the job slots of its quota, if any, within this context. Raises ClusterError if that is impossible."""
    if use is None:
        yield
        return
    membership = Quota(Path(use.folder)).join(job, use.request)
    instances.room = Room(0)
    share = Share(membership, instances, notify, say)
    share.look()
    keeping = asyncio.create_task(share.keep())
    try:
        yield
    finally:
        keeping.cancel()
        membership.leave()
