"""Observation of a running training for its automatic number of workers, see `edl.master.instances.autoscaler`."""

from __future__ import annotations

from edl.master.instances.autoscaler import Autoscaler, JobLook, WorkerDecision
from edl.master.instances.instance_manager import InstanceManager
from edl.master.tasks import progress
from edl.master.tasks.task_manager import TaskManager
from edl.spec import JobSpec
from edl.tasks.task import CONTROL

LOOK_SECS = 1.0


class AutomaticScaling:
    """Automatic number of workers of one job, at most `most`. `grouped`: its workers train in a group."""

    def __init__(self, tasks: TaskManager, instances: InstanceManager, most: int, *, grouped: bool) -> None:
        self._tasks = tasks
        self._instances = instances
        self._grouped = grouped
        self._autoscaler = Autoscaler(instances.wanted, most)
        self._looked = -LOOK_SECS
        self._first_rows: dict[tuple[str, int], int] = {}  # of an incarnation, when it was first seen
        self._active: set[tuple[str, int]] = set()  # incarnations that have done rows since

    def set(self, workers: int) -> None:
        """Go on from a number that a person has chosen."""
        self._autoscaler.set(workers)

    def tick(self, now: float) -> WorkerDecision | None:
        """Look at the job about once a second; return a decision, or None."""
        if now - self._looked < LOOK_SECS or self._tasks.is_finished:
            return None
        self._looked = now
        leases = self._tasks.state.leases.values()
        trains = not any(lease.type in CONTROL for lease in leases)
        has_room = not self._instances.waiting
        look = JobLook(now, progress.rows(self._tasks), self._count_active(), trains, has_room)
        return self._autoscaler.observe(look)

    def _count_active(self) -> int:
        """Return the number of running workers that take part in the training."""
        members = self._tasks.state.members
        running = {name for name in self._instances.workers if name in members and not members[name].gone}
        if self._grouped:
            group = self._tasks.state.rendezvous.present
            return len(running.intersection(group.members)) if group is not None else 0
        incarnations = {(name, members[name].incarnation) for name in running}
        self._active &= incarnations
        for key in incarnations - self._active:
            rows = self._tasks.rows_of(key[0])
            if rows > self._first_rows.setdefault(key, rows):
                self._active.add(key)
        return len(self._active)


def automatic_scaling(
    spec: JobSpec, tasks: TaskManager, instances: InstanceManager
) -> AutomaticScaling | None:
    """Return the automatic number of workers of a job that has asked for it, or None."""
    if not spec.cluster.max_workers or spec.work != "train":
        return None
    grouped = spec.cluster.strategy == "allreduce"
    return AutomaticScaling(tasks, instances, spec.cluster.max_workers, grouped=grouped)
