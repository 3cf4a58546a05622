"""Changes of a cluster that cannot be reached for a while."""

from __future__ import annotations

from collections.abc import Iterator

from edl.cluster import Change, Instance, Room
from edl.errors import ClusterError
from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.watch import follow
from edl.tasks.task import Task
from tests.edl.master.group_stage import LEASE, PLAN, GroupStage

NAMES = ("worker-0", "worker-1", "worker-2", "worker-3")


class Cluster:
    """Runs what it was asked to, and cannot be reached between two seconds. gone: names without any trace."""

    room: Room | None = None
    unfit: frozenset[str] = frozenset()

    def __init__(self, stage: GroupStage, away: tuple[float, float], gone: set[str]) -> None:
        self.stage = stage
        self.away = away
        self.gone = gone
        self.lists = 0

    def list(self) -> list[Change]:
        self._reach()
        self.lists += 1
        return [running(name) for name in NAMES if name not in self.gone]

    def watch(self) -> Iterator[Change | Room]:
        if self.stage.now < self.away[0]:
            yield from map(running, NAMES)
            self.stage.now = self.away[0]
        self._reach()

    def _reach(self) -> None:
        if self.away[0] <= self.stage.now < self.away[1]:
            raise ClusterError("the connection is closed")

    def start(self, instance: Instance) -> None:
        """Nothing comes of it here."""

    def stop(self, instance: Instance, grace: float) -> None:
        """Nothing comes of it here."""

    def close(self) -> None:
        """Nothing is open."""


def running(name: str) -> Change:
    return Change(Instance(name, "worker", 0), "running")


def test_a8_three_members_that_vanish_while_the_cluster_cannot_be_watched_are_found_missing() -> None:
    """They say nothing any more; the fourth goes on alone meanwhile."""
    stage = GroupStage(NAMES, PLAN)
    instances = InstanceManager(stage.master, len(NAMES))
    instances.actions(0.0)
    stage.train_together(NAMES)
    task = stage.take("worker-0")
    cluster = Cluster(stage, (stage.now + 1.0, stage.now + 301.0), set(NAMES[1:]))

    def pause(seconds: float) -> None:
        stage.pass_time(seconds, speaking=["worker-0"])
        if stage.now > 2 * LEASE and stage.present.members != ("worker-0",):
            stage.train_together(["worker-0"])

    follow(
        cluster,
        lambda change: instances.on_change(change, stage.now) if isinstance(change, Change) else None,
        lambda changes: instances.found(changes, stage.now),
        pause,
    )
    assert cluster.lists == 1
    assert isinstance(task, Task)
    assert list(stage.master.state.leases) == [task.attempt]
    assert stage.master.state.generation == 1
    started = [order.instance for order in instances.actions(stage.now + 60.0) if not order.stop]
    assert started == [Instance(name, "worker", 1) for name in NAMES[1:]]
