"""Execution of programs: in the session's training process, or with a master and workers, here or on Kubernetes.

A JobSpec's `cluster.workers` decides: 0 is the training process, which also runs jobs without rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edl.data.pinned import write_pinned
from edl.data.source import Pinned
from edl.jobs.cluster_folder import ClusterFolder, RunSpec, with_surroundings
from edl.jobs.events import ProcessEvent
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.recording import JobRecorder
from edl.spec import JobSpec
from sqlflow_edl.backends import processes
from sqlflow_edl.backends.base import Follower
from sqlflow_edl.backends.training_process import LocalSubmitter

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings

_FRAMEWORKS = {
    "keras": "TensorFlow",
    "torch": "PyTorch",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "ensemble": "the libraries",
}


class Submitter:
    """Submitter of one session's jobs; close it to end its training process.

    quota: the folder of slots that jobs with workers share with others; None for the folder in `EDL_QUOTA`, if set.
    share: number of submitters that share the cores of this machine.
    """

    def __init__(self, quota: Path | None = None, share: int = 1) -> None:
        self._quota = quota
        self._local = LocalSubmitter(share)

    def warm(self, framework: str) -> None:
        """Start a training process of the framework in advance; return at once."""
        self._local.warm(framework)

    def prepare_trials(self, framework: str) -> None:
        """Start a process for the trials of a search in advance, whose own one is warm; return at once."""
        self._local.prepare_trials(framework)

    def starting(self, spec: JobSpec, on: KubernetesSettings | None) -> str:
        """Return the reason why a job of the spec waits before its first step; empty if it starts quickly."""
        loading = f"loading {_FRAMEWORKS[spec.framework]}"
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
        if not (spec.cluster.workers and spec.rows.total):
            return self._run_recorded(job, spec, follower, weights)
        if on is None:
            how = processes.make_run_spec(spec, self._quota)
            return processes.run(job, how, follower.progress, keeps_best=spec.search is not None)
        from sqlflow_edl.backends.kubernetes import submit

        return submit.run(job, spec, pinned, on, follower)

    def _run_recorded(
        self, job: JobFolder, spec: JobSpec, follower: Follower, weights: Path | None
    ) -> Outcome:
        """Run the job in the training process; other processes can read how far it is, and resume a training."""
        if spec.kind == "train":
            run = RunSpec(spec.framework, threads=self._local.threads)
            ClusterFolder(job.path).write_run_spec(with_surroundings(run))
        with JobRecorder(ClusterFolder(job.path)) as record:

            def both(event: ProcessEvent) -> None:
                record(event)
                follower.progress(event)

            keeps_best = spec.search is not None
            return self._local.run(job, spec.framework, both, weights=weights, keeps_best=keeps_best)

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
            processes.leave(job, processes.make_run_spec(spec, self._quota, detached=True))
            return
        from sqlflow_edl.backends.kubernetes import submit

        submit.leave(job, spec, pinned, on, follower)

    def close(self) -> None:
        self._local.close()
