"""Continuation of a training in new pods: after it has failed, or when it moves to the cluster.

Its Job is made anew, with the state that was kept with its checkpoint as the one that its master finds. So that master
goes on as if all its instances were gone: it fetches the checkpoint from the data source, and the workers resume.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from edl.checkpoints.kept import KeptCheckpoint
from edl.cluster.kubernetes.api_calls import Calls
from edl.cluster.kubernetes.connect import connect
from edl.cluster.kubernetes.deployment import Deployment, read_deployment
from edl.errors import ClusterError, SourceError
from edl.jobs.cluster_folder import Process
from edl.jobs.job_folder import JobFolder
from edl.master.resume import check, point_of, reopen_job
from edl.master.state import MasterState
from edl.master.state_store import unpack
from edl.models.pending import Intent, destination, unmark_handled
from edl.spec import JobSpec, from_json
from edl.tasks import encoding
from sqlflow_edl.backends.kubernetes.apply import deploy, read_settings
from sqlflow_edl.backends.kubernetes.job_status import JobObjects

PATIENCE = 10.0  # seconds to retry an API server that does not answer
GONE_SECS = 90.0  # limit until all objects of an earlier Job are gone
POLL = 0.2


def resume_failed(job: JobFolder) -> str:
    """Start a training again that failed in pods, and return a message.

    Raises ClusterError if it cannot be resumed, SourceError if its rows or its checkpoint are gone.
    """
    check(job)
    spec, state = read_spec(job), read_state(job)
    reopen_job(state, spec)
    with open_again(job):
        if (before := read_deployment(job.path)) is not None:
            remove_objects(before)
        deploy(job, spec, read_settings(job), encoding.encode(state))
    return f"job {job.id}: {point_of(state)}"


@contextlib.contextmanager
def open_again(job: JobFolder) -> Iterator[None]:
    """Let the job count as running from now on; an error inside the context withdraws that.

    It stays marked as kept: its checkpoint is of use until it is done, whatever happens before.
    """
    before = job.status()
    us = Process.of(os.getpid())
    job.update(state="running", ended="", error="", pid=us.pid, started_as=us.started_as)
    unmark_handled(job.path)
    try:
        yield
    except BaseException:
        job.update(**{name: getattr(before, name) for name in before.__struct_fields__})
        raise


def read_state(job: JobFolder) -> MasterState:
    """Return the state that was kept with the checkpoint of the job. Raises SourceError if it is gone."""
    kept = kept_checkpoint(job).state()
    if kept is None:
        raise SourceError(
            f"job {job.id} cannot be resumed: its checkpoint is gone from its data source", hint="train again"
        )
    return encoding.decode(unpack(kept, "the kept state"), MasterState)


def kept_checkpoint(job: JobFolder) -> KeptCheckpoint:
    return KeptCheckpoint(read_destination(job).source, job.id, insists=False)


def read_destination(job: JobFolder) -> Intent:
    """Return where the model of the job goes. Raises ClusterError if it was not started by a statement."""
    intent = destination(job.path)
    if intent is None or not intent.source:
        raise ClusterError(f"job {job.id} was not started by a statement")
    return intent


def read_spec(job: JobFolder) -> JobSpec:
    return from_json((job.program / "job.json").read_bytes())


def remove_objects(deployment: Deployment) -> None:
    """Delete the Job of an earlier run with all that it owns, and wait until it is gone."""
    objects = JobObjects(Calls(connect(deployment.context), PATIENCE), deployment)
    objects.delete()
    deadline = time.monotonic() + GONE_SECS
    while objects.job() is not None or objects.pods():
        if time.monotonic() > deadline:
            raise ClusterError(
                f"the earlier pods of job {deployment.job} have not ended after {GONE_SECS:.0f} s",
                hint="their node may be unreachable; see kubectl describe pod",
            )
        time.sleep(POLL)
