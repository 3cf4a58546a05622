"""Jobs for tests of the instance manager, which have no cluster."""

from __future__ import annotations

from edl.cluster import Change, Instance, Reason
from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.slots import ScaleAction
from edl.master.tasks.task_manager import TaskManager
from edl.ps.checkpoint.content import Mode
from edl.tasks.job_state import Plan
from edl.tasks.ranges import STREAMED_ROWS
from tests.edl.master.stage import Stage

PREDICT = Plan("predict", 40 * STREAMED_ROWS)


class Job:
    """Task manager of a prediction, and the instance manager of its workers."""

    def __init__(self, workers: int, *, patience: int = 0) -> None:
        self.notes: list[str] = []
        self.leases = TaskManager(PREDICT, log=self.notes.append)
        self.instances = InstanceManager(self.leases, workers, patience=patience, advice="look there")

    def started(self, now: float) -> list[tuple[str, int]]:
        return [action.instance.key for action in self.instances.actions(now)]

    def on_end(self, name: str, incarnation: int, reason: Reason, now: float = 0.0) -> None:
        change = Change(Instance(name, "worker", incarnation), "ended", reason=reason, exit_code=1)
        self.instances.on_change(change, now)


def served(*, patience: int = 0) -> tuple[Stage, InstanceManager]:
    stage = Stage(Mode("async"))
    return stage, InstanceManager(stage.leases, 2, stage.servers, patience=patience)


def names(actions: list[ScaleAction], *, stop: bool) -> list[str]:
    return [action.instance.name for action in actions if action.stop == stop]
