"""Figures of a job from its tasks' state, including the reported parts of open tasks."""

from __future__ import annotations

from collections.abc import Iterable

from edl.jobs.snapshot import Counts
from edl.master.state import Lease
from edl.master.tasks.task_manager import TaskManager
from edl.tasks.task import Summary, TaskType


def counts(tasks: TaskManager) -> dict[str, Counts]:
    """Return the task counts by type. Tasks that workers hold in advance are not begun."""
    by_type: dict[TaskType, list[int]] = {kind: [0, 0, done] for kind, done in tasks.state.done.items()}
    for pool in tasks.job.pools:
        of_type = by_type.setdefault(pool.state.type, [0, 0, 0])
        of_type[0] += 0 if tasks.plan.is_endless else pool.todo
        of_type[1] += len(pool.doing)
    for kind, of_type in by_type.items():
        in_advance = min(of_type[1], tasks.count_in_advance(kind))  # as far as workers have said
        of_type[0], of_type[1] = of_type[0] + in_advance, of_type[1] - in_advance
    return {kind: Counts(*of_type) for kind, of_type in by_type.items()}


def rows(tasks: TaskManager) -> int:
    """Return the number of rows trained over all epochs, evaluated, or predicted."""
    kind = tasks.plan.kind
    if kind == "train":
        return sum_epochs(tasks).rows
    total = tasks.plan.rows
    of_rows: TaskType = "predict" if kind == "search" else kind
    under_way = sum(lease.rows for lease in tasks.state.of_type(of_rows).values())
    open_pools = [pool for pool in tasks.job.pools if pool.state.type == of_rows]
    return min(total, open_pools[0].state.summary.rows + under_way) if open_pools else total


def sum_epochs(tasks: TaskManager) -> Summary:
    """Return the sums over all epochs."""
    state = tasks.job.state
    open_ones = tasks.state.of_type("train").values()
    return _add_leases(Summary(state.rows, state.step, state.loss, state.weight), open_ones)


def loss(tasks: TaskManager) -> float | None:
    """Return the mean training loss of the earliest epoch with remaining rows."""
    pools = [pool.state for pool in tasks.job.pools if pool.state.type == "train"]
    if not pools:
        return None
    open_ones = tasks.state.of_type("train").values()
    of_epoch = [lease for lease in open_ones if lease.number == pools[0].number]
    return _add_leases(pools[0].summary, of_epoch).mean_loss


def _add_leases(done: Summary, leases: Iterable[Lease]) -> Summary:
    """Add the reported progress of open leases to `done`."""
    total = Summary(done.rows, done.steps, done.loss, done.weight)
    for lease in leases:
        total.rows += lease.rows
        total.steps += lease.steps
        total.loss += lease.loss
        total.weight += lease.weight
    return total
