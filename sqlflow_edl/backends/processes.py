"""Jobs with a master and workers, as processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from edl import reachability
from edl.cluster.local.client import SupervisedJob, start_detached
from edl.cluster.quota.quota import use_of
from edl.jobs.cluster_folder import RunSpec, master_timeout
from edl.jobs.cores import available_cores
from edl.jobs.events import JobEvent
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.spec import JobSpec


def make_run_spec(spec: JobSpec, quota: Path | None, *, detached: bool = False) -> RunSpec:
    """Return the process settings: each worker gets its share of the cores.

    Raises ClusterError if the quota has no room for them, SpecError if EDL_MASTER_TIMEOUT or EDL_UNREACHABLE_SECS is
    wrong.
    """
    reachability.limit()  # else each process would fail
    threads = max(1, available_cores() // spec.cluster.workers)
    return RunSpec(
        spec.framework,
        threads=threads,
        quota=use_of(spec.cluster, quota),
        detached=detached,
        master_timeout=master_timeout(os.environ),
    )


def run(
    job: JobFolder, how: RunSpec, on_event: Callable[[JobEvent], None], *, keeps_best: bool = False
) -> Outcome:
    """Run the job in the folder, over its pinned rows, and wait for it; raises the job's own error if it fails.
    keeps_best: see `SupervisedJob.follow`.
    """
    with SupervisedJob.start(job, how) as running:
        return running.follow(on_event, keeps_best=keeps_best)


def leave(job: JobFolder, how: RunSpec) -> None:
    """Start the job, which continues when this process ends. Raises ClusterError if it does not start."""
    start_detached(job, how)
