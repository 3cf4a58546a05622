"""Whole jobs in pods of a double of their own, with nodes that may be filled, shrunk and lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl.cluster.kubernetes import names, status_map
from edl.cluster.kubernetes.deployment import Deployment
from edl.data import Source
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Snapshot
from edl.models.archive import read_archive
from edl.models.pending import Intent
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord
from edl.program import read_spec
from edl.spec import Checkpoints, Query, Rows
from edl.spec import Cluster as ClusterSpec
from sqlflow_edl.backends.kubernetes.apply import apply
from sqlflow_edl.backends.kubernetes.settings import read_configuration
from tests.edl.cluster.kubernetes.deployed import Deployed, job_of, outcome_of
from tests.kubernetes.process import Cluster

BATCH = 64
SELECT = "SELECT x, y FROM t"
SMALL = {"master_cpu": "0.1", "worker_cpu": "1", "ps_cpu": "0.1", "ps_cpu_limit": "1", "grace_secs": "5"}
CLASSES = {"high": 1000, "low": 10}
RARELY = Checkpoints(steps=0, secs=0)
SECONDS = 0.5


def make_table(source: Source, rows: int) -> None:
    """`t`, where y = 3 x + 1."""
    source.execute(f"CREATE TABLE t AS SELECT seq AS n, (seq % 97) / 48.0 - 1 AS x FROM seq_1_to_{rows}")
    source.execute("ALTER TABLE t ADD y DOUBLE AS (3 * x + 1)")


def training(
    source: Source,
    name: str,
    rows: int,
    cluster: ClusterSpec,
    when: Checkpoints = RARELY,
    **program: Any,
) -> JobFolder:
    """A job folder, ready to be applied: so many rows of `t` are trained once. program: see `programs.simple`."""
    query = Query(f"{SELECT} WHERE n <= {rows}", "mysql", source.url)
    record = ModelRecord("DNNRegressor", "torch", rows, {}, query.select)
    return job_of(
        source,
        query.select,
        Intent("train", source.url, name, record),
        Rows(True, rows, rows, 0),
        epochs=1,
        batch_size=BATCH,
        changes={"cluster": cluster, "checkpoints": when, "query": query},
        **program,
    )


def applied(job: JobFolder, settings: Mapping[str, str]) -> Deployment:
    """Put it into the cluster that the kubeconfig names. settings: see docs/kubernetes.md."""
    return apply(job, read_spec(job.program), read_configuration(pairs=settings.items()).settings())


@dataclass(frozen=True)
class Yard:
    """A double, and a database with `t`."""

    double: Cluster
    source: Source
    folder: Path

    def deploy(self, job: JobFolder, settings: Mapping[str, str]) -> Deployed:
        """In a namespace of its own."""
        written = {"namespace": self.double.new_namespace(), **SMALL, **settings}
        return Deployed(self.double, applied(job, written), self.folder)

    def slow(
        self,
        name: str,
        rows: int,
        cluster: ClusterSpec,
        when: Checkpoints = RARELY,
        *,
        model: str = "",
        **settings: str,
    ) -> SlowJob:
        """model: text with functions that replace the program's."""
        hurry = self.folder / f"hurry-{name}"
        slowly = _slowly(hurry)
        for old, new in slowly.items():
            model = model.replace(old, new)
        job = training(self.source, name, rows, cluster, when, replace=slowly, append=model)
        return SlowJob(self.deploy(job, settings), hurry)

    def weights(self, name: str) -> dict[str, Any]:
        """Return the weights of the model that was stored last."""
        archive = self.folder / f"{name}.zip"
        open_registry(self.source).load(name, archive)
        return dict(read_archive(archive).weights())

    def make_classes(self) -> None:
        """Two priority classes, high and low."""
        for name, value in CLASSES.items():
            body = {"metadata": {"name": name}, "value": value}
            self.double.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)


class SlowJob:
    """A step of it takes `SECONDS` until `hurry` is called: all of them, more than a test does meanwhile."""

    def __init__(self, deployed: Deployed, hurry: Path) -> None:
        self.deployed = deployed
        self.hurry = hurry.touch
        self._rows = 0

    @property
    def name(self) -> str:
        return self.deployed.deployment.name

    def until(self, true: Callable[[Snapshot], Any]) -> None:
        """Of what its master shows."""

        def holds() -> Any:
            now = self.snapshot()
            return now is not None and true(now)

        self.deployed.until(holds)

    def snapshot(self) -> Snapshot | None:
        return status_map.read_snapshot(self.deployed.status())

    def trains(self, running: int, pending: int = 0) -> Callable[[Snapshot], bool]:
        """Whether so many workers got on since this was true the last time, and so many others wait for a node."""

        def true(now: Snapshot) -> bool:
            if now.rows <= self._rows or (now.group and len(now.members) != running):
                return False
            if workers(now) != Counter(running=running) + Counter(pending=pending):
                return False
            self._rows = now.rows
            return True

        return true

    def pod(self, name: str) -> str:
        """Of the instance's present start."""
        now = self.snapshot()
        assert now is not None
        [incarnation] = [row.incarnation for row in now.instances if row.name == name]
        return f"{self.name}-{name}-{incarnation}"

    def kill(self, name: str) -> None:
        self.deployed.delete(self.pod(name))

    def evict(self, name: str) -> None:
        """As who drains a node does."""
        pod = self.pod(name)
        path = f"/api/v1/namespaces/{self.deployed.deployment.namespace}/pods/{pod}/eviction"
        self.deployed.double.ask("POST", path, {"metadata": {"name": pod}})

    def wish(self, **wishes: str) -> None:
        """Annotate the Job, as `sqlflow scale` does."""
        path = f"/apis/batch/v1/namespaces/{self.deployed.deployment.namespace}/jobs/{self.name}"
        job = self.deployed.double.ask("GET", path)
        found = job["metadata"].setdefault("annotations", {})
        found |= {f"{names.APP}/{name}": value for name, value in wishes.items()}
        self.deployed.double.ask("PUT", path, job)

    def run_out_of_memory(self, name: str) -> None:
        self.deployed.double.run_out_of_memory(self.deployed.deployment.namespace, self.pod(name))

    def has_pod(self, name: str) -> bool:
        """Return True if a pod of the instance is there, ended or not."""
        return any(pod["metadata"]["labels"].get(names.INSTANCE) == name for pod in self.deployed.pods())

    def on_node(self, node: str) -> list[str]:
        """Roles of its pods there that have not ended."""
        return [
            pod["metadata"]["labels"][names.ROLE]
            for pod in self.deployed.pods()
            if pod["spec"].get("nodeName") == node and pod["status"]["phase"] in ("Pending", "Running")
        ]

    def outcome(self) -> Outcome:
        """When it is over."""
        return outcome_of(self.deployed)


def workers(now: Snapshot) -> Counter[str]:
    """How many are in each state."""
    return Counter(row.state for row in now.instances if row.role == "worker")


def relaunches(now: Snapshot) -> dict[str, int]:
    """Of those that were started again."""
    return {row.name: row.relaunches for row in now.instances if row.relaunches}


def _slowly(hurry: Path) -> dict[str, str]:
    return {
        "import torch\n": "import os\nimport time\n\nimport torch\n",
        "def loss(labels, predictions):\n": "def loss(labels, predictions):\n"
        f"    time.sleep(0 if os.path.exists({str(hurry)!r}) else {SECONDS})\n",
    }
