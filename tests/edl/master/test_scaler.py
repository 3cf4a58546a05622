"""Orders to the cluster: at the same time for different names, one after another for each."""

from __future__ import annotations

import asyncio
import threading

from edl.cluster import Instance
from edl.errors import ClusterError
from edl.master.instances.scaler import AT_ONCE, Scaler
from edl.master.instances.slots import ScaleAction


class Cluster:
    """Keeps what it was asked for; a start returns when as many are under way as `together`.

    deaf: to so many stops, which fail.
    """

    def __init__(self, together: int = 1, *, deaf: int = 0) -> None:
        self.asked: list[tuple[str, int, str]] = []
        self._deaf = deaf
        self._together = threading.Barrier(together)

    def start(self, instance: Instance) -> None:
        self.asked.append((*instance.key, "start"))
        self._together.wait(30)
        if instance.name == "worker-9":
            raise ClusterError("no")

    def stop(self, instance: Instance, grace: float) -> None:
        self.asked.append((*instance.key, "stop"))
        if self._deaf:
            self._deaf -= 1
            raise ClusterError("it does not answer")


def carried_out(cluster: Cluster, *actions: ScaleAction) -> list[Instance]:
    """Give the orders and wait for them; who was refused."""
    refused: list[Instance] = []

    async def work() -> None:
        given = Scaler(cluster, lambda instance, error: refused.append(instance), retry_secs=0.0)  # type: ignore[arg-type]
        for action in actions:
            given.submit(action)
        await given.finish()
        given.close()

    asyncio.run(work())
    return refused


def worker(number: int, incarnation: int = 0) -> Instance:
    return Instance(f"worker-{number}", "worker", incarnation)


def test_many_names_are_started_at_the_same_time() -> None:
    cluster = Cluster(together=AT_ONCE)
    assert not carried_out(cluster, *(ScaleAction(worker(100 + number)) for number in range(AT_ONCE)))
    assert len(cluster.asked) == AT_ONCE


def test_the_orders_of_a_name_are_carried_out_one_after_another() -> None:
    cluster = Cluster()
    actions = [
        ScaleAction(worker(0)),
        ScaleAction(worker(0), stop=True),
        ScaleAction(worker(0, 1)),
        ScaleAction(worker(0, 1), stop=True),
    ]
    carried_out(cluster, *actions)
    assert cluster.asked == [
        ("worker-0", 0, "start"),
        ("worker-0", 0, "stop"),
        ("worker-0", 1, "start"),
        ("worker-0", 1, "stop"),
    ]


def test_a_start_that_is_refused_is_told_and_the_next_order_is_carried_out() -> None:
    cluster = Cluster()
    refused = carried_out(
        cluster, ScaleAction(worker(9)), ScaleAction(worker(9), stop=True), ScaleAction(worker(1))
    )
    assert refused == [worker(9)]
    assert sorted(cluster.asked)[-1] == ("worker-9", 0, "stop")


def test_a_stop_that_fails_is_repeated_before_the_next_order_of_its_name() -> None:
    cluster = Cluster(deaf=2)
    assert not carried_out(cluster, ScaleAction(worker(0), stop=True), ScaleAction(worker(0, 1)))
    assert cluster.asked == [*[("worker-0", 0, "stop")] * 3, ("worker-0", 1, "start")]
