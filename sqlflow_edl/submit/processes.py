"""Runs programs with a master and workers, as processes of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable

from edl.cluster.client import SupervisedJob
from edl.cluster.folder import Spec
from edl.data.jobs import JobFolder
from edl.errors import ClusterError
from edl.instance.client import available_cores
from edl.spec.job import Framework
from edl.tasks.events import EpochEnd, Progress, Tally
from edl.tasks.outcome import Outcome

START_SECS = 20.0  # that a supervisor has to take over its job


def run(
    job: JobFolder,
    framework: Framework,
    workers: int,
    on_event: Callable[[Progress | EpochEnd | Tally], None],
) -> Outcome:
    """Run the job in the folder, whose rows are pinned, and wait for it; an error of it is raised as it was there."""
    with SupervisedJob.start(job, _how(framework, workers)) as running:
        return running.follow(on_event)


def leave(job: JobFolder, framework: Framework, workers: int) -> None:
    """Start the job, which goes on when this process ends. ClusterError: it does not start."""
    with SupervisedJob.start(job, _how(framework, workers, detached=True)) as running:
        try:
            _wait_for_start(job, running)
        except BaseException:  # it is not to start later on, unseen
            running.cancel()
            raise


def _wait_for_start(job: JobFolder, running: SupervisedJob) -> None:
    deadline = time.monotonic() + START_SECS
    while job.status().pid != running.pid:  # until then it would count as ours, and as dead when we are
        if not running.runs or time.monotonic() > deadline:
            raise ClusterError(f"the supervisor of job {job.id} does not start", hint="its log tells why")
        time.sleep(0.01)


def _how(framework: Framework, workers: int, *, detached: bool = False) -> Spec:
    """Each worker has its share of the cores."""
    return Spec(framework, threads=max(1, available_cores() // workers), detached=detached)
