"""Totals of a job's parameter servers in the durable state: what they have counted, and the updates that were lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edl.jobs.snapshot import ServerCounts
from edl.master.state import MasterState, ServerLoss
from edl.ps.checkpoint.content import Progress
from edl.ps.messages import Figures

NO_SERVER = -1  # index of a loss that is of a worker


class UpdateTally:
    """Totals since the start of the job, over all servers and their predecessors."""

    def __init__(self, state: MasterState) -> None:
        self._state = state

    def observe(self, index: int, figures: Figures) -> None:
        """Record the counts of a server in this generation. It counts anew in the next one; the state then keeps the
        earlier counts (`MasterState.keep_counts`).
        """
        if figures.generation != self._state.generation:
            return
        record = self._state.all_servers[index]
        record.counts = ServerCounts(figures.evicted, figures.refused, figures.stale, figures.staleness)
        if figures.lost:
            place = index, record.epoch
            losses_here = [loss for loss in self._state.losses if (loss.index, loss.epoch) == place]
            for loss in losses_here[
                -1:
            ]:  # another server may have had the same place in an earlier generation
                loss.updates, loss.rows = figures.lost, figures.lost_rows  # exact, in place of an estimate

    def lose(self, index: int, checkpoint: str, updates: int, rows: int) -> None:
        """Record an estimate of what the checkpoint lacks, which the next process of the server restores."""
        epoch = self._state.servers[index].epoch + 1
        self._state.losses = [*self._state.losses, ServerLoss(index, epoch, checkpoint, updates, rows)]

    def record_torn_push(self, parts: Sequence[Progress | None]) -> None:
        """Record the rows of a push that the end of a worker kept from some servers: the rows count as trained.

        parts: progress of its lease on each server, None before the first push.
        """
        rows, steps = (
            [getattr(part, name) if part is not None else 0 for part in parts] for name in ("rows", "steps")
        )
        if lacking := max(rows, default=0) - min(rows, default=0):
            torn = ServerLoss(NO_SERVER, 0, self._state.checkpoint_name, max(steps) - min(steps), lacking)
            self._state.losses = [*self._state.losses, torn]

    @property
    def counts(self) -> ServerCounts:
        """Counts that never go down."""
        return sum((record.counts for record in self._state.all_servers), self._state.server_counts)

    @property
    def losses(self) -> tuple[int, int]:
        """Updates that the parameters lack, and their rows: of lost servers, and torn ones."""
        return _sums(self._state.losses)

    @property
    def torn(self) -> tuple[int, int]:
        """Updates among them of workers that ended, which some servers have, and their rows."""
        return _sums(loss for loss in self._state.losses if loss.index == NO_SERVER)


def _sums(losses: Iterable[ServerLoss]) -> tuple[int, int]:
    all_losses = list(losses)
    return sum(loss.updates for loss in all_losses), sum(loss.rows for loss in all_losses)
