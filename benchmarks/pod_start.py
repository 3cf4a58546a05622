"""Job on Kubernetes from the creation of its Job to the first trained minibatch, stage by stage.

It runs on the double of the tests, and on a real cluster if EDL_TEST_KUBECONFIG and EDL_TEST_IMAGE name a
cluster and an image (see `tests.sqlflow_edl.backends.kubernetes.place`). A stage ends when its effect is
observed here, at most LOOK_SECONDS late, or when the program reports it in its log; the clocks of nodes and of
this machine must agree.

Two parts are outside this project: the start of containers by nodes, and the import of the framework, which is
timed in a pod that does nothing else.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from benchmarks.table import Row
from edl.cluster.kubernetes.api_calls import Calls
from edl.cluster.kubernetes.connect import connect
from edl.data import connect as connect_source
from edl.spec import Cluster as ClusterSpec
from tests.edl.end_to_end import timed
from tests.kubernetes.process import api_server
from tests.mariadb import MISSING, is_installed, running
from tests.sqlflow_edl.backends.kubernetes import place
from tests.sqlflow_edl.backends.kubernetes.in_pods import BATCH, applied, make_table, training
from tests.sqlflow_edl.backends.kubernetes.kubeconfig import write_kubeconfig
from tests.sqlflow_edl.backends.kubernetes.place import Place

ROWS = 1_000 * BATCH
LOOK_SECONDS = 0.05
PATIENCE = 300.0

IMPORT = [
    "python",
    "-c",
    "import time; began = time.perf_counter(); import torch; print(time.perf_counter() - began)",
]
TOLD = ("loaded", "first step", "second step")  # moments that the program writes to its log
MOMENTS = {
    "import torch\n": "import time\n\nimport torch\n",
    "def loss(labels, predictions):\n": """\
def tell():
    print(f"\\nmoment {time.time()}", flush=True)


tell()
TOLD = []


def loss(labels, predictions):
    if len(TOLD) < 2:
        TOLD.append(tell())
""",
}

# In their order; True for the project's own.
STAGES = {
    "the client makes the objects": True,
    "the master's pod gets a node and starts": False,
    "the master imports, and orders a worker": True,
    "the worker's pod gets a node and starts": False,
    "the worker imports, with the framework": True,
    "rows, model, first task": True,
    "first step": True,
}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure on the double, and on a real cluster if there is one. `rows` is ignored."""
    table: list[Row] = []
    with timed.apart():
        if config := os.environ.get(place.CONFIG):
            with mock.patch.dict(os.environ, KUBECONFIG=config), place.real(os.environ[place.IMAGE]) as real:
                table += _measured("a real cluster", real, rounds)
        if is_installed():
            with _double(folder) as double:
                table += _measured("the double", double, rounds)
        else:
            table.append(Row("pod_start", MISSING))
    return table


@contextlib.contextmanager
def _double(folder: Path) -> Iterator[Place]:
    own = folder / "pod_start"
    own.mkdir()
    with running(own) as server, api_server(own) as double, mock.patch.dict(os.environ):
        os.environ["KUBECONFIG"] = str(own / "kubeconfig")
        write_kubeconfig(own / "kubeconfig", double.url, double.administrator)
        yield Place(double.new_namespace(), server.url(), Calls(connect()))


def _measured(where: str, at: Place, rounds: int) -> Iterator[Row]:
    with connect_source(at.url) as source:
        make_table(source, ROWS)
    found = [_Start(at).seconds() for _ in range(rounds)]
    imports = [_import_alone(at) for _ in range(rounds)]
    totals = [sum(stages) for stages in found]
    own = [
        sum(secs for secs, ours in zip(stages, STAGES.values(), strict=True) if ours) - alone
        for stages, alone in zip(found, imports, strict=True)
    ]
    yield Row(f"{where}: from the creation of the Job to the first trained minibatch", _figure(totals))
    for name, seconds in zip(STAGES, zip(*found, strict=True), strict=True):
        yield Row(f"… {name}", _figure(seconds))
    yield Row("… `import torch` in a pod that does nothing else", _figure(imports))
    yield Row("… the project's own, without that", _figure(own))


def _figure(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({', '.join(f'{one:.2f}' for one in seconds)})"


def _import_alone(at: Place) -> float:
    container = {"name": "main", "image": at.image, "imagePullPolicy": "IfNotPresent", "command": IMPORT}
    spec = {"restartPolicy": "Never", "containers": [container]}
    path = f"/api/v1/namespaces/{at.namespace}/pods"
    at.calls.ask("POST", path, {"metadata": {"name": "import"}, "spec": spec})
    pod = f"{path}/import"
    place.until(lambda: b'"phase":"Succeeded"' in at.calls.ask("GET", pod).replace(b" ", b""), PATIENCE)
    seconds = float(at.calls.ask("GET", f"{pod}/log"))
    at.calls.ask("DELETE", pod, {"gracePeriodSeconds": 0})
    return seconds


@dataclass(frozen=True)
class _Start:
    """Job that is started, timed and deleted."""

    at: Place

    def seconds(self) -> list[float]:
        """Measure the seconds of each stage."""
        settings = {
            **place.SETTINGS,
            "namespace": self.at.namespace,
            "image": self.at.image,
            "image_pull_policy": "IfNotPresent",
            "grace_secs": "5",
        }
        with connect_source(self.at.url) as source:
            job = training(source, "m", ROWS, ClusterSpec(1), replace=MOMENTS)
        seen = [time.time()]
        deployment = applied(job, settings)
        try:
            seen.append(time.time())
            for true in (
                lambda: self._runs("master"),
                lambda: self.at.pods("worker"),
                lambda: self._runs("worker"),
            ):
                place.until(true, PATIENCE, LOOK_SECONDS)
                seen.append(time.time())
            place.until(lambda: len(self._told()) == len(TOLD), PATIENCE, LOOK_SECONDS)
            return [after - before for before, after in itertools.pairwise(seen + self._told())]
        finally:
            path = f"/apis/batch/v1/namespaces/{self.at.namespace}/jobs/{deployment.name}"
            self.at.calls.ask("DELETE", path, {"propagationPolicy": "Background"})
            place.until(lambda: not self.at.pods())

    def _runs(self, role: str) -> bool:
        return any(pod["status"]["phase"] == "Running" for pod in self.at.pods(role))

    def _told(self) -> list[float]:
        """Return the times that the program logged, in their order."""
        [pod] = self.at.pods("worker")
        path = f"/api/v1/namespaces/{self.at.namespace}/pods/{pod['metadata']['name']}/log"
        return [
            float(second)
            for second in re.findall(r"^moment ([\d.]+)$", self.at.calls.ask("GET", path).decode(), re.M)
        ]
