"""Execution of programs: in the session's training process, or with a master and workers, here or on Kubernetes.

A JobSpec's `cluster.workers` decides: 0 is the training process, which also runs jobs without rows. After a job with
workers, a supervisor waits for the next one (`edl.cluster.local.standby`).

The training process runs one job at a time; it is started early and kept between statements. Each framework has a
process of its own: two in one process would each take all cores. The process of a framework that the next statement
does not use stays idle, for to import PyTorch or Keras again would take seconds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edl import data, reachability
from edl.cluster.quota.quota import use_of
from edl.data.pinned import FILE, read_pinned, write_pinned, write_rows
from edl.data.source import Pinned
from edl.jobs.cluster_folder import ClusterFolder, RunSpec, master_timeout, with_surroundings
from edl.jobs.cores import available_cores
from edl.jobs.events import ProcessEvent
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.recording import JobRecorder
from edl.run.idle_processes import IdleProcesses
from edl.run.training_client import TrainingProcess
from edl.spec import ENSEMBLE, Cluster, JobSpec
from edl.spec.job import Framework
from sqlflow_edl.backends.base import Follower

if TYPE_CHECKING:
    from edl.cluster.local.standby import Standby
    from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings

_FRAMEWORKS = {
    "keras": "TensorFlow",
    "torch": "PyTorch",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "ensemble": "the libraries",
    "onnx": "ONNX Runtime",
}


class Submitter:
    """Submitter of one session's jobs; close it to end its training process.

    quota: the folder of slots that jobs with workers share with others; None for the folder in `EDL_QUOTA`, if set.
    share: number of submitters that share the cores of this machine.
    """

    def __init__(self, quota: Path | None = None, share: int = 1) -> None:
        self._quota = quota
        self._is_alone = share == 1
        self._local = LocalSubmitter(share)
        self._standby: Standby | None = None  # for the next job with workers

    def warm(self, framework: str) -> None:
        """Start a training process of the framework in advance; return at once."""
        self._local.warm(framework)

    def prepare_trials(self, framework: str) -> None:
        """Start a process for the trials of a search in advance, whose own one is warm; return at once."""
        self._local.prepare_trials(framework)

    def prepare_workers(self, framework: Framework, cluster: Cluster) -> None:
        """Start in advance what workers of the framework need; return at once."""
        if cluster.workers:
            self._wait_with(
                _run_spec(framework, cluster.workers), collectives=cluster.strategy == "allreduce"
            )

    def starting(self, spec: JobSpec, on: KubernetesSettings | None) -> str:
        """Return the reason why a job of the spec waits before its first step; empty if it starts quickly."""
        loading = f"loading {_FRAMEWORKS[spec.framework]}"
        if spec.image and on is None:
            return f"starting a container of {spec.image}: {loading}"
        if on is not None:
            return ""  # the cluster's events show why its pods wait
        if spec.cluster.workers and spec.rows.total:
            return f"starting the workers: {loading}"
        return f"starting the training process: {loading}" if self._local.is_loading(spec.framework) else ""

    def run(
        self,
        job: JobFolder,
        spec: JobSpec,
        pinned: Pinned,
        follower: Follower,
        *,
        weights: Path | None = None,
        on: KubernetesSettings | None = None,
    ) -> Outcome:
        """Run the program in the job folder on the pinned rows, and wait for it. Raises JobError if it fails.

        on: settings for Kubernetes; None for this machine.
        """
        write_pinned(job.rows, pinned)
        if spec.image and on is None:
            return _run_in_container(job, spec, pinned, follower, weights)
        if not (spec.cluster.workers and spec.rows.total):
            return self._run_recorded(job, spec, follower, weights)
        if on is None:
            return self._run_in_processes(job, spec, follower)
        from sqlflow_edl.backends.kubernetes import submit

        return submit.run(job, spec, pinned, on, follower)

    def _run_in_processes(self, job: JobFolder, spec: JobSpec, follower: Follower) -> Outcome:
        """Run the job with workers, by the supervisor that waits if it fits, and start one for the next job."""
        from edl.cluster.local.client import SupervisedJob

        how, collectives = make_run_spec(spec, self._quota), spec.cluster.strategy == "allreduce"
        standby, self._standby = self._standby, None
        if standby is not None and not standby.fits(how, collectives=collectives):
            standby.close()
            standby = None
        with SupervisedJob.start(job, how, standby) as running:
            outcome = running.follow(follower.progress, keeps_best=spec.search is not None)
        if self._is_alone:  # each of several would hold a framework in memory
            self._wait_with(how, collectives=collectives)
        return outcome

    def _wait_with(self, how: RunSpec, *, collectives: bool) -> None:
        """Let a supervisor wait for a job that runs like this, unless one does."""
        from edl.cluster.local.standby import Standby

        if self._standby is not None and not self._standby.fits(how, collectives=collectives):
            self._standby.close()
            self._standby = None
        self._standby = self._standby or Standby.start(how, collectives=collectives)

    def _run_recorded(
        self, job: JobFolder, spec: JobSpec, follower: Follower, weights: Path | None
    ) -> Outcome:
        """Run the job in the training process; other processes can read how far it is, and resume a training."""
        if spec.kind == "train":
            run = RunSpec(spec.framework, threads=self._local.threads)
            ClusterFolder(job.path).write_run_spec(with_surroundings(run))
        with JobRecorder(ClusterFolder(job.path)) as record:
            report, keeps_best = _reporter(record, follower), spec.search is not None
            return self._local.run(job, spec.framework, report, weights=weights, keeps_best=keeps_best)

    def leave(
        self,
        job: JobFolder,
        spec: JobSpec,
        pinned: Pinned,
        follower: Follower,
        on: KubernetesSettings | None = None,
    ) -> None:
        """Start the job, which continues when this process ends."""
        write_pinned(job.rows, pinned)
        if on is None:
            leave_processes(job, make_run_spec(spec, self._quota, detached=True))
            return
        from sqlflow_edl.backends.kubernetes import submit

        submit.leave(job, spec, pinned, on, follower)

    def close(self) -> None:
        self._local.close()
        if self._standby is not None:
            self._standby.close()
            self._standby = None


def _run_in_container(
    job: JobFolder, spec: JobSpec, pinned: Pinned, follower: Follower, weights: Path | None
) -> Outcome:
    """Run the job in a container of its image, which sees the folder of the job alone, and no data source."""
    _copy_rows(pinned, job.rows)
    if job.validation_rows.is_dir():
        _copy_rows(read_pinned(job.validation_rows), job.validation_rows)
    with (
        JobRecorder(ClusterFolder(job.path)) as record,
        TrainingProcess.start_in_image(spec.image, spec.framework, job.path) as process,
    ):
        report, keeps_best = _reporter(record, follower), spec.search is not None
        return process.run(job.program, job.path, report, weights=weights, keeps_best=keeps_best)


def _reporter(record: JobRecorder, follower: Follower) -> Callable[[ProcessEvent], None]:
    """Return a function that records an event of a training process and shows it to the user."""

    def report(event: ProcessEvent) -> None:
        record(event)
        follower.progress(event)

    return report


def _copy_rows(pinned: Pinned, folder: Path) -> None:
    """Copy pinned rows that are elsewhere, in a table or in files, into the folder."""
    if pinned.table is None and pinned.file == FILE:
        return
    reader = data.open_reader(pinned, folder)
    write_rows(folder, reader.schema, reader.read(0, reader.rows))
    write_pinned(folder, msgspec.structs.replace(pinned, table=None, file=FILE))


def make_run_spec(spec: JobSpec, quota: Path | None, *, detached: bool = False) -> RunSpec:
    """Return the process settings: each worker gets its share of the cores.

    Raises ClusterError if the quota has no room for them, SpecError if EDL_MASTER_TIMEOUT or EDL_UNREACHABLE_SECS is
    wrong.
    """
    reachability.limit()  # else each process would fail
    return msgspec.structs.replace(
        _run_spec(spec.framework, spec.cluster.workers),
        quota=use_of(spec.cluster, quota),
        detached=detached,
        master_timeout=master_timeout(os.environ),
    )


def _run_spec(framework: Framework, workers: int) -> RunSpec:
    return RunSpec(framework, threads=max(1, available_cores() // workers))


def leave_processes(job: JobFolder, how: RunSpec) -> None:
    """Start the job, which continues when this process ends. Raises ClusterError if it does not start."""
    from edl.cluster.local.client import start_detached

    start_detached(job, how)


MOST_IDLE = 2  # processes of other frameworks, each with 0.1 GB (trees) to 0.6 GB (Keras) of memory


class LocalSubmitter:
    """Submitter to the training process; close it to end all its processes.

    share: number of such processes that share the cores.
    """

    def __init__(self, share: int = 1) -> None:
        threads = max(1, available_cores() // share) if share > 1 else None
        self.threads = threads or available_cores()
        self._idle = IdleProcesses(MOST_IDLE, threads)
        self._process: TrainingProcess | None = None

    def warm(self, framework: str) -> None:
        """Start the process of the framework if it does not run; return at once."""
        process = self._process
        if process is not None and process.framework == framework and process.is_alive:
            return
        self._process = None
        if process is not None and process.framework != framework and process.is_ready:
            self._idle.put(process)
        elif process is not None:
            process.close()
        self._process = self._idle.take(framework)

    def prepare_trials(self, framework: str) -> None:
        """Start a process for trials of the framework in advance, if the one for the search itself runs."""
        if self._process is not None and self._process.framework == ENSEMBLE:
            self._process.prepare(framework)

    def is_loading(self, framework: str) -> bool:
        """Return True if a job of the framework must wait for its import, as far as is known here."""
        process = self._process
        if process is None or process.framework != framework:
            return not self._idle.has(framework)
        return not (process.is_ready and process.is_alive)

    def run(
        self,
        job: JobFolder,
        framework: str,
        on_event: Callable[[ProcessEvent], None],
        *,
        weights: Path | None = None,
        keeps_best: bool = False,
    ) -> Outcome:
        """Run the program in the job folder on its pinned rows, and wait for it. Raises JobError if it fails.

        keeps_best: the first Ctrl-C ends the job early with the result that it has reached.
        """
        self.warm(framework)
        process = self._process
        if process is None:
            raise RuntimeError("warm() starts a process")
        return process.run(job.program, job.path, on_event, weights=weights, keeps_best=keeps_best)

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None
        self._idle.close()
