"""Two jobs on a cluster that is too small for both: as gangs one after the other, or both at once.

The cluster is the double of the tests, with a node of few slots. Each job is a group of four workers whose
steps have a known duration. Three of them have a high priority, one a low one, so the second job preempts a
worker of the first, which continues with the others and later replaces the worker. Or both are in one queue of
Kueue, which admits pods up to a quota: the second job begins with what the first leaves, and grows when that is
done. As gangs, the second job waits until the first is complete.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from benchmarks import quota
from benchmarks.calibrated import BATCH, CALIBRATED, LOOK_SECONDS, ROW_SECONDS, STEPS, Observed, busy
from benchmarks.simulation import Job
from benchmarks.table import Row
from edl.cluster.kubernetes import names, status_map
from edl.data import Source, connect
from edl.spec import Cluster as ClusterSpec
from tests.edl.cluster.kubernetes.deployed import Deployed
from tests.edl.end_to_end import timed
from tests.kubernetes.process import api_server
from tests.mariadb import MISSING, is_installed, running
from tests.sqlflow_edl.backends.kubernetes.in_pods import Yard, make_table, training
from tests.sqlflow_edl.backends.kubernetes.kubeconfig import write_kubeconfig

SLOTS, WORKERS = 6, 4
JOB_SECONDS = 60.0  # seconds of steps of a job with all its workers
SECOND_COMES = 0.1  # fraction of that, after the first
PATIENCE = 900.0
SETTINGS = {
    "master_cpu": "0.01",
    "worker_cpu": "1",
    "priority_class": "high",
    "low_priority_class": "low",
    "high_priority_fraction": "0.75",
}
QUEUE = "q"
QUEUED = {"master_cpu": "0.01", "worker_cpu": "1", "queue": QUEUE}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure once, which takes minutes; `rounds` is ignored. For few `rows` the jobs are small."""
    return _measured("pods", SETTINGS, folder / "preempting", rows)


def measure_queued(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure jobs in a queue, like `measure`."""
    return _measured("queue", QUEUED, folder / "queued", rows)


def _measured(what: str, settings: Mapping[str, str], own: Path, rows: int) -> list[Row]:
    if not is_installed():
        return [Row(what, MISSING)]
    seconds = JOB_SECONDS if rows > 100_000 else JOB_SECONDS / 6
    count = int(WORKERS * seconds / ROW_SECONDS) // BATCH * BATCH
    comes = SECOND_COMES * seconds
    own.mkdir()
    with timed.apart(), running(own) as server, connect(server.url()) as source:
        make_table(source, count)
        ours, theirs = (
            _run(own / name, source, count, comes, settings, gang=name == "gang")
            for name in ("elastic", "gang")
        )
    jobs = [Job(name, at, WORKERS, count * ROW_SECONDS) for name, at in (("first", 0.0), ("second", comes))]
    name = f"{what}: {SLOTS} slots, two jobs of {WORKERS}, the second after {comes:.1f} s"
    # A queue takes no worker from the first job, so at best 93 s remain of 126 s.
    most = 0.8 if QUEUE in settings.values() else quota.RATIO
    return quota.compared(name, jobs, SLOTS, ours, theirs, most=most)


def _run(
    folder: Path, source: Source, rows: int, second: float, settings: Mapping[str, str], *, gang: bool
) -> Observed:
    """Run two jobs of `rows` rows. Observation starts when the first job comes."""
    steps = folder / "steps"
    steps.mkdir(parents=True)
    with _yard(folder, source) as yard:
        if QUEUE in settings.values():
            settings = {**settings, "namespace": yard.double.new_namespace()}
            yard.double.capacity(cpu="32")
            yard.double.queue(settings["namespace"], QUEUE, cpu=f"{SLOTS}.02")  # with both masters
        found, began = Observed([(0.0, {})]), time.monotonic()
        jobs = {"first": _deploy(yard, "first", rows, steps, settings)}
        while len(found.ends) < 2:
            now = time.monotonic() - began
            assert now < PATIENCE, [each.phases() for each in jobs.values()]
            if "second" not in jobs and (found.ends if gang else now >= second):
                jobs["second"] = _deploy(yard, "second", rows, steps, settings)
            _look(jobs, now, found)
            time.sleep(LOOK_SECONDS)
    found.busy = busy(steps, began, found.makespan)
    return found


@contextmanager
def _yard(folder: Path, source: Source) -> Iterator[Yard]:
    with api_server(folder) as double, mock.patch.dict(os.environ):
        os.environ["KUBECONFIG"] = str(folder / "kubeconfig")
        write_kubeconfig(folder / "kubeconfig", double.url, double.administrator)
        double.capacity(cpu=f"{SLOTS}.5")
        yard = Yard(double, source, folder)
        yard.make_classes()
        yield yard


def _deploy(yard: Yard, name: str, rows: int, steps: Path, settings: Mapping[str, str]) -> Deployed:
    # In the program rather than the environment, because a pod's /tmp differs from this machine's.
    here = {old: new.replace(f'os.environ["{STEPS}"]', repr(str(steps))) for old, new in CALIBRATED.items()}
    cluster = ClusterSpec(WORKERS, strategy="allreduce")
    job = training(yard.source, name, rows, cluster, replace=here, minibatches_per_task=1)
    return yard.deploy(job, settings)


def _look(jobs: dict[str, Deployed], now: float, found: Observed) -> None:
    """Record the slots of each job when they change, and the jobs that are done."""
    holds = {name: _workers(job)["Running"] for name, job in jobs.items() if name not in found.ends}
    if found.changes[-1][1] != holds:
        found.changes.append((now, holds))
    for name, job in jobs.items():
        conditions = job.conditions()
        assert "Failed" not in conditions, status_map.read_end(job.status())
        if name not in found.ends and "Complete" in conditions:
            found.ends[name] = now


def _workers(job: Deployed) -> Counter[str]:
    """Count the workers of the job in each phase."""
    labels = names.labels(job.deployment.name, job.deployment.job, "worker")
    found = (pod for pod in job.pods() if labels.items() <= pod["metadata"]["labels"].items())
    return Counter(str(pod["status"]["phase"]) for pod in found)
