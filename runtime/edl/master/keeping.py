"""Keeping of a training's checkpoint where it outlives all pods: in the data source of the job.

Checkpoints of pods are on the disk of their master, on a volume or in an object store. The disk ends with its pod, so
one checkpoint is copied before; beside a volume or a store, the state of the job is kept alone, to be resumed from.
"""

from __future__ import annotations

import asyncio

from edl.checkpoints.kept import KeptCheckpoint
from edl.data.source import ConflictError, UnreachableError
from edl.errors import ClusterError, SQLFlowError
from edl.logs import log
from edl.master.state import MasterState
from edl.master.state_store import pack
from edl.master.stored_checkpoints import StoredCheckpoints
from edl.master.tasks.task_manager import TaskManager
from edl.tasks import encoding

QUICK_BYTES = 32 << 20  # of a checkpoint that is copied within a second or two


class Keeping:
    """Keeps the checkpoint of a job in `place`, if there is one. `copies`: checkpoints end with the master."""

    def __init__(
        self,
        tasks: TaskManager,
        checkpoints: StoredCheckpoints,
        place: KeptCheckpoint | None,
        *,
        copies: bool,
    ) -> None:
        self._tasks = tasks
        self._checkpoints = checkpoints
        self._place = place
        self._copies = copies

    @property
    def is_possible(self) -> bool:
        return self._place is not None

    @property
    def is_of_use(self) -> bool:
        """True if a last checkpoint of the workers outlives the master."""
        return self._place is not None or not self._copies

    async def keep(self) -> bool:
        """Keep the checkpoint that the job would go back to, and return True if it is kept.

        The state says so from now on; write it. An absent source is waited for.
        """
        state, place = self._tasks.state, self._place
        checkpoint = state.checkpoint
        if place is None or checkpoint is None or checkpoint.manifest is not None:
            return False
        name, before = checkpoint.folder, state.kept
        if not self._checkpoints.is_there(name):
            return name == before  # as an earlier master left it
        state.kept = name
        data = pack(encoding.encode(self._tasks.to_store()[0]))
        try:
            await asyncio.to_thread(place.put, self._checkpoints.folder_of(name), data, files=self._copies)
        except (OSError, SQLFlowError) as error:
            log(f"the checkpoint {name} could not be kept in the data source: {error}")
            state.kept = before
            return False
        return True

    async def keep_last(self) -> bool:
        """Keep the checkpoint of a job that has failed, and return True if the data source has one. One that was kept
        before stays if the last one cannot be: the state beside it goes back to it.
        """
        return await self.keep() or bool(self._place is not None and self._tasks.state.kept)

    async def keep_if_quick(self) -> None:
        """Keep a small checkpoint though instances stay that have what was trained: they may leave before the next
        master has another one.
        """
        name = self._tasks.state.checkpoint_name
        if self._copies and self._checkpoints.is_there(name) and self._checkpoints.size(name) <= QUICK_BYTES:
            await self.keep()

    async def remove(self) -> None:
        """Remove what was kept of a job that has ended, or log why that fails: a later session does it."""
        if self._place is None or not self._tasks.state.kept:
            return
        try:
            await asyncio.to_thread(self._place.remove)
        except SQLFlowError as error:
            log(f"the kept checkpoint remains in the data source for now: {error.message}")


def bring_back(state: MasterState, checkpoints: StoredCheckpoints, place: KeptCheckpoint | None) -> None:
    """Fetch the checkpoint of this state, if it was kept and is not here.

    Raises ClusterError if the data source is away: another master may reach it.
    """
    if place is None or not state.kept or state.kept != state.checkpoint_name:
        return
    try:
        checkpoints.bring_back(state.kept, place)
    except (ConflictError, UnreachableError) as error:
        raise ClusterError(f"the checkpoint {state.kept} cannot be fetched: {error.message}") from None
