"""Pause, resumption and numbers of workers and servers of a job on Kubernetes, as wishes that its master reads from the
Job.

A paused job has no worker and no server. If its checkpoints outlive the master's pod, the Job is suspended, which ends
that pod too; else the pod stays, because they are on its disk.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from edl.checkpoints.factory import VARIABLE, with_master
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.status_map import read_snapshot
from edl.cluster.kubernetes.wishes import wishes_of
from edl.errors import ClusterError
from edl.jobs.job_folder import JobFolder
from edl.jobs.snapshot import Snapshot
from edl.spec import from_json
from sqlflow_edl.backends import scale as scaling
from sqlflow_edl.backends.base import Numbers
from sqlflow_edl.backends.kubernetes.job_status import JobObjects, KubernetesJob

POLL = 0.5  # seconds between two looks at the status
TAKEN_UP_SECS = 20.0  # time for a master to read and carry out a number of workers


def pause(folder: JobFolder, objects: JobObjects) -> str:
    """Pause the job, wait until its pods have ended, and return a message. An interrupt ends the wait only.

    Raises ClusterError if it does not run, or could not be resumed.
    """
    job = _running(folder, objects)
    if wishes_of(job.metadata).paused and folder.status().state == "paused":
        hint = f"`sqlflow resume {folder.id}` continues it"
        raise ClusterError(f"job {folder.id} is paused already", hint=hint)
    if (why := _obstacle(folder, objects)) is not None:
        raise ClusterError(f"job {folder.id} cannot be paused: {why[0]}", hint=why[1])
    objects.patch({"metadata": {"annotations": {names.PAUSED: "true"}}})
    snapshot = _wait_for_pause(folder, objects)
    # Kueue would resume a Job that someone else has suspended.
    stays = bool(job.queue) or not _are_durable(folder, objects)
    if not stays:
        objects.patch({"spec": {"suspend": True}})
    folder.update(state="paused")
    done = (
        f" after step {snapshot.step:,}, in epoch {snapshot.epoch}"
        if snapshot is not None and snapshot.step
        else ""
    )
    because = "Kueue has admitted it" if job.queue else "its checkpoints are there"
    kept = f"; the pod of its master stays, because {because}" if stays else ""
    return f"job {folder.id} is paused{done}{kept}"


def resume(folder: JobFolder, objects: JobObjects) -> str:
    """Let a paused job continue, and return a message. Raises ClusterError if it is not paused."""
    job = _running(folder, objects)
    if not wishes_of(job.metadata).paused and not is_held(folder, objects):
        hint = f"follow it with `sqlflow attach {folder.id}`"
        raise ClusterError(f"job {folder.id} cannot be resumed: it runs", hint=hint)
    # Only Kueue resumes a Job of a queue.
    spec: dict[str, object] = {} if job.queue else {"spec": {"suspend": False}}
    annotations = {names.PAUSED: None, names.RESUMED: datetime.now(UTC).isoformat()}
    objects.patch({"metadata": {"annotations": annotations}, **spec})
    folder.update(state="running")
    return f"job {folder.id} continues"


def is_held(folder: JobFolder, objects: JobObjects) -> bool:
    """Return True if the master has paused the job at its deadline."""
    program = folder.program / "job.json"
    if folder.status().kind != "train" or not program.is_file():
        return False
    if not from_json(program.read_bytes()).cluster.deadline:
        return False
    snapshot = read_snapshot(objects.status())
    return snapshot is not None and snapshot.paused


def scale(folder: JobFolder, objects: JobObjects, numbers: Numbers) -> str:
    """Set the numbers and return a message. Raises ClusterError if one of them is fixed."""
    _running(folder, objects)
    if not objects.deployment.has_master:
        raise ClusterError(f"job {folder.id} runs a program in one pod, without workers")
    if folder.status().kind == "run":
        raise scaling.fixed_size_error(folder, numbers)
    spec = scaling.check_strategy(folder, numbers)
    before = _numbers(objects) or Numbers(spec.cluster.workers, spec.cluster.parameter_servers)
    wishes = {names.WORKERS: numbers.workers, names.SERVERS: numbers.servers}
    annotations = {name: str(number) for name, number in wishes.items() if number is not None}
    objects.patch({"metadata": {"annotations": annotations}})
    changed = before.describe_change(numbers)
    if not changed:
        return scaling.nothing_to_do(folder, numbers)
    text = f"job {folder.id}: {changed}"
    deadline = time.monotonic() + TAKEN_UP_SECS
    while (now := _numbers(objects)) is None or now.describe_change(numbers):
        if time.monotonic() > deadline:
            return f"{text}, as soon as its master runs and reads it; see `sqlflow logs {folder.id} master`"
        time.sleep(POLL)
    notes = "".join(f"\n  note: {note}" for note in scaling.limits(spec, before, numbers))
    return f"{text}{notes}"


def _numbers(objects: JobObjects) -> Numbers | None:
    """Return the numbers that the job's master has taken up, or None if it shows none."""
    snapshot = read_snapshot(objects.status())
    return (
        Numbers(snapshot.workers, snapshot.wanted_servers)
        if snapshot is not None and snapshot.workers
        else None
    )


def _running(folder: JobFolder, objects: JobObjects) -> KubernetesJob:
    """Return the Job. Raises ClusterError if it has ended."""
    job = objects.job()
    if job is None or job.is_over:
        raise ClusterError(f"job {folder.id} has ended", hint=f"see `sqlflow job {folder.id}`")
    return job


def _obstacle(folder: JobFolder, objects: JobObjects) -> tuple[str, str] | None:
    """Return why the job could not be resumed, with a hint, or None."""
    end = f"`sqlflow cancel {folder.id}` ends it"
    if not objects.deployment.has_master:
        return "it runs a program, which keeps no state", end
    if folder.status().kind == "run":
        return "it runs a script, whose state only the script knows", end
    spec = from_json((folder.program / "job.json").read_bytes())
    checkpoints, servers = spec.checkpoints, spec.cluster.parameter_servers
    settings = checkpoints if _are_durable(folder, objects) else with_master(checkpoints, servers)
    if servers and settings.copies == "neighbours":
        instead = (
            "train without train.checkpoint_copies"
            if checkpoints.copies == "neighbours"
            else "kubernetes.volume or kubernetes.checkpoints gives the next one a place for them"
        )
        return "its checkpoints are in the memory of its parameter servers", f"{end}; {instead}"
    return None


def _are_durable(folder: JobFolder, objects: JobObjects) -> bool:
    """Return True if the job loses nothing with the pod of its master."""
    if folder.status().kind != "train":  # its results are in the data source
        return True
    containers: list[dict[str, Any]] = objects.deployment.worker["spec"]["containers"]
    return any(variable["name"] == VARIABLE for variable in containers[0].get("env", ()))


def _wait_for_pause(folder: JobFolder, objects: JobObjects) -> Snapshot | None:
    """Wait until the master has ended all other instances, or there is none; return its last report.

    Raises ClusterError if the job ends before.
    """
    while True:
        job = objects.job()
        if job is None or job.is_over:
            raise ClusterError(
                f"job {folder.id} has ended before it was paused", hint=f"see `sqlflow job {folder.id}`"
            )
        snapshot = read_snapshot(objects.status())
        # A master that has succeeded ends the job, though the Job's condition may be late.
        has_begun = any(pod.status.phase in ("Running", "Succeeded") for pod in objects.pods())
        if not has_begun or (snapshot is not None and snapshot.paused):
            return snapshot
        time.sleep(POLL)
