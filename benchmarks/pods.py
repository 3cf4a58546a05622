"""Pods of a job on Kubernetes: time of a master from its first action until it has seen all run.

The API server is the double of the tests, in a process of its own, with a delay for each pod that is created,
as on real servers. Its pods have no processes. The peer creates the same pods with the official client, one
after another, and watches until all run.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from benchmarks.table import Row
from edl.cluster import Change, Instance, Room
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.cluster import KubernetesCluster
from edl.cluster.kubernetes.deployment import Deployment
from edl.errors import SQLFlowError
from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.scaler import Scaler
from edl.master.instances.watch import follow
from edl.master.tasks.task_manager import TaskManager
from edl.tasks.job_state import Plan
from tests.kubernetes.faults import Fault
from tests.kubernetes.process import Cluster, api_server

COUNTS = (100, 1000)
CREATE_SECS = 0.01  # delay of the server for a pod, beside its own work
PATIENCE = 300.0


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure with a hundred pods, and for many `rows` also with a thousand."""
    counts = COUNTS if rows > 100_000 else COUNTS[:1]
    return [_against_a_loop(folder / "pods" / str(count), rounds, count) for count in counts]


def _against_a_loop(folder: Path, rounds: int, count: int) -> Row:
    ours, theirs = [], []
    for number in range(rounds):
        with _double(folder / str(number)) as double:
            ours.append(asyncio.run(Site(double, count).by_master()))
        with _double(folder / f"{number}-peer") as double:
            theirs.append(Site(double, count).by_client())
    median = sorted(ours, key=lambda course: course.seconds)[rounds // 2]
    return Row(
        f"{count:,} pods of a job, until the master has seen all run; against a loop of the official client",
        f"{median.words}; {statistics.median(theirs):.1f} s",
        [mine.seconds / other for mine, other in zip(ours, theirs, strict=True)],
        most=0.5,
    )


@dataclass(frozen=True)
class Course:
    """Result of a run: seconds until all run, processor seconds of this process, and number of requests."""

    seconds: float
    own: float
    requests: int

    @property
    def words(self) -> str:
        rate = self.requests / self.seconds
        return f"{self.seconds:.1f} s, {self.own:.2f} of the master's processor, {rate:,.0f} requests/s"


@contextlib.contextmanager
def _double(folder: Path) -> Iterator[Cluster]:
    folder.mkdir(parents=True)
    with api_server(folder) as double:
        double.go_wrong(Fault("delay", "^POST .*/pods$", times=10**9, seconds=CREATE_SECS))
        yield double


class Site:
    """Job in a namespace of its own, and the pods that it should have."""

    def __init__(self, double: Cluster, count: int) -> None:
        self.double, self.count = double, count
        self.namespace = double.new_namespace()
        container = {"name": "main", "image": "pause"}
        self.manifest: dict[str, Any] = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        body = {"metadata": {"name": "job"}, "spec": {"suspend": True, "template": self.manifest}}
        self.job = double.ask("POST", f"/apis/batch/v1/namespaces/{self.namespace}/jobs", body)
        double.requests()

    async def by_master(self) -> Course:
        """Start the pods with the instance manager, scaler and pod watch of a master."""
        uid = self.job["metadata"]["uid"]
        deployment = Deployment("job", self.namespace, "id", self.manifest, self.manifest, uid=uid)
        cluster = KubernetesCluster(self.double.client(), deployment, self.count)
        crew = InstanceManager(TaskManager(Plan("predict", 1_000_000)), self.count)
        all_run, loop = asyncio.Event(), asyncio.get_running_loop()

        def changed(change: Change | Room) -> None:
            if isinstance(change, Change):
                crew.on_change(change, loop.time())
            if crew.running == self.count:
                all_run.set()

        def refused(instance: Instance, error: SQLFlowError) -> None:
            raise error

        orders = Scaler(cluster, refused)
        cluster.list()
        following = threading.Thread(
            target=follow, args=(cluster, lambda change: loop.call_soon_threadsafe(changed, change), print)
        )
        following.start()
        began, own = time.perf_counter(), time.process_time()
        for order in crew.actions(loop.time()):
            orders.submit(order)
        await asyncio.wait_for(all_run.wait(), PATIENCE)
        course = Course(time.perf_counter() - began, time.process_time() - own, len(self.double.requests()))
        orders.close()
        cluster.close()
        following.join()
        return course

    def by_client(self) -> float:
        """Return the seconds of a plain loop over the official client."""
        from kubernetes import client, watch

        with self.double.client() as api:
            core: Any = client.CoreV1Api(api)  # its types demand a V1Pod, and leave out that fields are there
            began = time.perf_counter()
            for number in range(self.count):
                name = names.pod("job", Instance(f"worker-{number}", "worker"))
                core.create_namespaced_pod(self.namespace, {**self.manifest, "metadata": {"name": name}})
            listed = core.list_namespaced_pod(self.namespace)
            running = {pod.metadata.name for pod in listed.items if pod.status.phase == "Running"}
            version = listed.metadata.resource_version
            events = (
                cast(Any, watch)
                .Watch()
                .stream(
                    core.list_namespaced_pod, self.namespace, resource_version=version, timeout_seconds=300
                )
            )
            with contextlib.closing(events):
                while len(running) < self.count:
                    pod = next(events)["object"]
                    running |= {pod.metadata.name} if pod.status.phase == "Running" else set()
            return time.perf_counter() - began
