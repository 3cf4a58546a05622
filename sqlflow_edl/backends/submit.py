"""Runs programs: in the training process of this session, or with a master and workers, here or on Kubernetes.

A JobSpec's `cluster.workers` decides: 0 is the training process. A job without rows has nothing to share.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edl.data.pinned import write_pinned
from edl.data.source import Pinned
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.spec import JobSpec
from sqlflow_edl.backends import processes
from sqlflow_edl.backends.base import Follower
from sqlflow_edl.backends.training_process import LocalSubmitter

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import Settings

_FRAMEWORKS = {"keras": "TensorFlow", "torch": "PyTorch"}


class Submitter:
    """Submits the jobs of one session; close it to end its training process.

    quota: the folder of slots that jobs with workers share with others; None: what `EDL_QUOTA` names, or none.
    """

    def __init__(self, quota: Path | None = None) -> None:
        self._quota = quota
        self._local = LocalSubmitter()

    def warm(self, framework: str) -> None:
        """Have a training process of the framework get ready; returns at once."""
        self._local.warm(framework)

    def starting(self, spec: JobSpec, on: Settings | None) -> str:
        """What a job of the spec waits for before its first step, in words; empty: nothing that takes long."""
        loading = f"loading {_FRAMEWORKS[spec.framework]}"
        if on is not None:
            return ""  # the cluster's events say what its pods wait for
        if spec.cluster.workers and spec.rows.total:
            return f"starting the workers: {loading}"
        return f"starting the training process: {loading}" if self._local.loading(spec.framework) else ""

    def run(
        self,
        job: JobFolder,
        spec: JobSpec,
        pinned: Pinned,
        follower: Follower,
        *,
        weights: Path | None = None,
        on: Settings | None = None,
    ) -> Outcome:
        """Run the program in the job folder on the pinned rows, and wait for it; JobError says how it failed.

        on: how it runs on Kubernetes; None: on this machine.
        """
        write_pinned(job.rows, pinned)
        if not (spec.cluster.workers and spec.rows.total):
            return self._local.run(job, spec.framework, follower.progress, weights=weights)
        if on is None:
            return processes.run(job, processes.how(spec, self._quota), follower.progress)
        from sqlflow_edl.backends.kubernetes import submit

        return submit.run(job, spec, pinned, on, follower)

    def leave(
        self, job: JobFolder, spec: JobSpec, pinned: Pinned, follower: Follower, on: Settings | None = None
    ) -> None:
        """Start the job, which goes on when this process ends."""
        write_pinned(job.rows, pinned)
        if on is None:
            processes.leave(job, processes.how(spec, self._quota, detached=True))
            return
        from sqlflow_edl.backends.kubernetes import submit

        submit.leave(job, spec, pinned, on, follower)

    def close(self) -> None:
        self._local.close()
