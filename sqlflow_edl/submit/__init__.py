"""Runs programs: in the training process of this session, or with a master and workers.

A JobSpec's `cluster.workers` decides: 0 is the training process. A job without rows has nothing to share.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from edl.data.jobs import JobFolder
from edl.data.pinned import write_pinned
from edl.data.source import Pinned
from edl.spec import JobSpec
from edl.tasks.events import EpochEnd, Progress, Tally
from edl.tasks.outcome import Outcome
from sqlflow_edl.submit import processes
from sqlflow_edl.submit.local import LocalSubmitter


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

    def run(
        self,
        job: JobFolder,
        spec: JobSpec,
        pinned: Pinned,
        on_event: Callable[[Progress | EpochEnd | Tally], None],
        *,
        weights: Path | None = None,
    ) -> Outcome:
        """Run the program in the job folder on the pinned rows, and wait for it; JobError says how it failed."""
        write_pinned(job.rows, pinned)
        if spec.cluster.workers and spec.rows.total:
            return processes.run(job, processes.how(spec, self._quota), on_event)
        return self._local.run(job, spec.framework, on_event, weights=weights)

    def leave(self, job: JobFolder, spec: JobSpec, pinned: Pinned) -> None:
        """Start the job, which goes on when this process ends."""
        write_pinned(job.rows, pinned)
        processes.leave(job, processes.how(spec, self._quota, detached=True))

    def close(self) -> None:
        self._local.close()
