"""Pause of a training on this machine: its processes end, and it can be resumed from where it was."""

from __future__ import annotations

import time

from edl.checkpoints import factory
from edl.cluster.local.client import is_supervised
from edl.errors import ClusterError
from edl.jobs.cluster_folder import SCRIPT_MASTER, ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.models.pending import resume_command
from edl.spec import from_json
from sqlflow_edl.backends import master_call
from sqlflow_edl.backends.report import state_of

POLL = 0.1


def pause(job: JobFolder) -> str:
    """Pause the job, wait until its processes have ended, and return a message.

    An interrupt ends the wait only. Raises ClusterError if the job could not be resumed afterwards.
    """
    _check(job)
    _tell_master(job)
    supervisor = ClusterFolder(job.path).process("supervisor")
    while supervisor is not None and supervisor.runs:
        time.sleep(POLL)
    if (state := state_of(job.status())) != "paused":
        raise ClusterError(f"job {job.id} has ended before it was paused: its state is {state}")
    from edl.master.resume import point

    return f"job {job.id} is paused; when it is resumed, {point(job)}"


def _tell_master(job: JobFolder) -> None:
    from edl.rpc import control_pb2 as pb

    master_call.call(
        job, lambda channel: channel.call(channel.stub.Pause, pb.PauseRequest(), master_call.CALL_SECS)
    )


def _check(job: JobFolder) -> None:
    """Raise ClusterError if the job does not run, or could not be resumed."""
    status = job.status()
    if status.state == "paused":
        raise ClusterError(f"job {job.id} is paused already", hint=f"{resume_command(job.path)} continues it")
    if not status.is_alive:
        raise ClusterError(f"job {job.id} does not run: its state is {state_of(status)}")
    if (why := _obstacle(job)) is not None:
        raise ClusterError(f"job {job.id} cannot be paused: {why[0]}", hint=why[1])


def _obstacle(job: JobFolder) -> tuple[str, str] | None:
    """Return why the job could not be resumed, with a hint, or None."""
    kind, end = job.status().kind, f"`sqlflow cancel {job.id}` ends it"
    if kind != "train":
        return f"it is not a training, but of the kind {kind}, and would begin anew", end
    if not is_supervised(job):
        return (
            "it runs in one process, which has no master",
            f"SIGTERM to its command, process {job.status().pid}, keeps it; --workers 1 gives the next one a master",
        )
    if ClusterFolder(job.path).run_spec().master == SCRIPT_MASTER:
        return "it runs a script of `edl run`, which keeps its own state", end
    spec = from_json((job.program / "job.json").read_bytes())
    servers = spec.cluster.parameter_servers
    if servers and factory.adapt_settings(spec.checkpoints, job.path, servers).copies == "neighbours":
        return (
            "its checkpoints are in the memory of its parameter servers",
            f"{end}; train without train.checkpoint_copies and with EDL_CHECKPOINTS not set to `master`",
        )
    return None
