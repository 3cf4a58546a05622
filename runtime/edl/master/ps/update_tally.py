"""Totals of a job's parameter servers in the durable state: what they have counted, and the updates that were lost."""

from __future__ import annotations

from edl.jobs.snapshot import ServerCounts
from edl.master.state import MasterState, ServerLoss
from edl.ps.messages import Figures


class UpdateTally:
    """Totals since the start of the job, over all servers and their predecessors."""

    def __init__(self, state: MasterState) -> None:
        self._state = state

    def observe(self, index: int, figures: Figures) -> None:
        """Record the counts of a server in this generation. It counts anew in the next one, with which the state keeps
        those of before (`MasterState.keep_counts`).
        """
        if figures.generation != self._state.generation:
            return
        record = self._state.all_servers[index]
        record.counts = ServerCounts(figures.evicted, figures.refused, figures.stale, figures.staleness)
        if figures.lost:
            place = index, record.epoch
            own = [loss for loss in self._state.losses if (loss.index, loss.epoch) == place]
            for loss in own[-1:]:  # another server may have had the same place in an earlier generation
                loss.updates, loss.rows = figures.lost, figures.lost_rows  # exact, in place of an estimate

    def lose(self, index: int, checkpoint: str, updates: int, rows: int) -> None:
        """Record an estimate of what the checkpoint lacks, which the next process of the server restores."""
        epoch = self._state.servers[index].epoch + 1
        self._state.losses = [*self._state.losses, ServerLoss(index, epoch, checkpoint, updates, rows)]

    @property
    def counts(self) -> ServerCounts:
        """Counts that never go down."""
        return sum((record.counts for record in self._state.all_servers), self._state.server_counts)

    @property
    def losses(self) -> tuple[int, int]:
        """Updates that lost servers had applied and their replacements lack, and their rows."""
        losses = self._state.losses
        return sum(loss.updates for loss in losses), sum(loss.rows for loss in losses)
