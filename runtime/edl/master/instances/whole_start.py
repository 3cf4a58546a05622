"""Start of a job with a least number of workers: no task is handed out before so many of them are ready."""

from __future__ import annotations

from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.slots import describe_wait
from edl.master.tasks.task_manager import TaskManager

FIRST_SECS = 10.0  # without enough workers until that is told
AGAIN_SECS = 60.0  # between two notes


class WholeStart:
    """Start of one job, which waits for `least` workers. A job that has begun goes on with those that it has.

    While it waits, the job stands still in the sense of `InstanceManager.hindrances`, so the limit of a wait applies.
    """

    def __init__(self, tasks: TaskManager, instances: InstanceManager, least: int) -> None:
        self._tasks = tasks
        self._instances = instances
        self._least = least
        self._due: float | None = None  # time of the next note
        self._set_waiting(least > 1 and not tasks.has_begun)

    def tick(self, now: float) -> None:
        """Begin the job if enough workers are ready, or tell why it waits."""
        if not self._tasks.is_held:
            return
        least = min(self._least, self._instances.wanted)
        ready = self._tasks.count_workers()
        if ready >= least:
            self._set_waiting(False)
            return
        self._due = now + FIRST_SECS if self._due is None else self._due
        if now >= self._due:
            self._due = now + AGAIN_SECS
            waits = self._instances.hindrances
            because = "".join(f"; {describe_wait(name, why)}" for name, why in waits.items() if why)
            self._tasks.log(f"the job begins when {least} workers are ready, and {ready} are{because}")

    def _set_waiting(self, waits: bool) -> None:
        self._tasks.is_held = waits
        self._instances.least_workers = self._least if waits else 1
