"""Pause, resumption and numbers of workers and servers of a job on Kubernetes, as wishes that its master reads from the
Job.

A paused job has no worker and no server. If its checkpoints outlive the pod of the master, on a volume, in an object
store or in the data source, the Job is suspended, which ends that pod too; else the pod stays: they are on its disk.
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
from edl.spec import Checkpoints, JobSpec, from_json
from sqlflow_edl.backends.base import Numbers
from sqlflow_edl.backends.kubernetes.job_status import JobObjects, KubernetesJob
from sqlflow_edl.backends.steering import PauseObstacle, ending

POLL = 0.5  # seconds between two looks at the status
TAKEN_UP_SECS = 20.0  # time for a master to read and carry out a number of workers


class SteeredKubernetesJob:
    """`sqlflow_edl.backends.steering.SteeredJob` on Kubernetes."""

    def __init__(self, folder: JobFolder, objects: JobObjects) -> None:
        self.folder = folder
        self._objects = objects

    def is_paused(self) -> bool:
        return wishes_of(self._running().metadata).paused and self.folder.status().state == "paused"

    def is_of_script(self) -> bool:
        return self.folder.status().kind == "run"

    def resume(self) -> str:
        """Let a paused job continue, and return a message. Raises ClusterError if it is not paused."""
        job = self._running()
        if not wishes_of(job.metadata).paused and not is_held(self.folder, self._objects):
            hint = f"follow it with `sqlflow attach {self.folder.id}`"
            raise ClusterError(f"job {self.folder.id} cannot be resumed: it runs", hint=hint)
        # Only Kueue resumes a Job of a queue.
        spec: dict[str, object] = {} if job.queue else {"spec": {"suspend": False}}
        self._annotate({names.PAUSED: None, names.RESUMED: datetime.now(UTC).isoformat()}, spec)
        self.folder.update(state="running")
        return f"job {self.folder.id} continues"

    def _running(self) -> KubernetesJob:
        """Return the Job. Raises ClusterError if it has ended."""
        job = self._objects.job()
        if job is None or job.is_over:
            raise ClusterError(f"job {self.folder.id} has ended", hint=f"see `sqlflow job {self.folder.id}`")
        return job

    def _annotate(self, annotations: dict[str, str | None], more: dict[str, object] | None = None) -> None:
        self._objects.patch({"metadata": {"annotations": annotations}, **(more or {})})

    # Pause -----------------------------------------------------------------------------------------------

    def explain_obstacle(self) -> PauseObstacle | None:
        if not self._objects.deployment.has_master:
            return PauseObstacle("it runs a program, which keeps no state", hint=ending(self.folder))
        if self.is_of_script():
            return PauseObstacle(
                "it runs a script, whose state only the script knows", hint=ending(self.folder)
            )
        return None

    def checkpoint_settings(self, spec: JobSpec) -> Checkpoints:
        if self._keeps_checkpoints():
            return spec.checkpoints
        return with_master(spec.checkpoints, spec.cluster.parameter_servers)

    def advise_on_checkpoints(self, spec: JobSpec) -> str:
        if spec.checkpoints.copies == "neighbours":
            return "train without train.checkpoint_copies"
        return "kubernetes.volume or kubernetes.checkpoints gives the next one a place for them"

    def pause(self) -> str:
        is_queued = bool(self._running().queue)
        self._annotate({names.PAUSED: "true"})
        snapshot = self._wait_for_pause()
        # Kueue would resume a Job that someone else has suspended.
        is_kept = self._keeps_checkpoints() or (snapshot is not None and snapshot.kept)
        stays = is_queued or not is_kept
        if not stays:
            self._objects.patch({"spec": {"suspend": True}})
        self.folder.update(state="paused")
        done = (
            f" after step {snapshot.step:,}, in epoch {snapshot.epoch}"
            if snapshot is not None and snapshot.step
            else ""
        )
        because = "Kueue has admitted it" if is_queued else "its checkpoints are there"
        return done + (f"; the pod of its master stays, because {because}" if stays else "")

    def _keeps_checkpoints(self) -> bool:
        """Return True if the job loses nothing with the pod of its master."""
        if self.folder.status().kind != "train":  # its results are in the data source
            return True
        containers: list[dict[str, Any]] = self._objects.deployment.worker["spec"]["containers"]
        return any(variable["name"] == VARIABLE for variable in containers[0].get("env", ()))

    def _wait_for_pause(self) -> Snapshot | None:
        """Wait until the master has ended all other instances, or there is none; return its last report.

        Raises ClusterError if the job ends before.
        """
        while True:
            self._check_goes_on(self._objects.job())
            snapshot = read_snapshot(self._objects.status())
            # A master that has succeeded ends the job, though the Job's condition may be late.
            has_begun = any(pod.status.phase in ("Running", "Succeeded") for pod in self._objects.pods())
            if not has_begun or (snapshot is not None and snapshot.paused):
                return snapshot
            time.sleep(POLL)

    def _check_goes_on(self, job: KubernetesJob | None) -> None:
        """Raise ClusterError if the job has ended, or was cancelled from another terminal."""
        if job is None or job.is_over or job.metadata.deletion_timestamp or not self.folder.status().is_alive:
            raise ClusterError(
                f"job {self.folder.id} has ended before it was paused",
                hint=f"see `sqlflow job {self.folder.id}`",
            )

    # Numbers ---------------------------------------------------------------------------------------------

    def check_workers(self, numbers: Numbers) -> None:
        self._running()
        if not self._objects.deployment.has_master:
            raise ClusterError(f"job {self.folder.id} runs a program in one pod, without workers")

    def request_numbers(self, spec: JobSpec, numbers: Numbers) -> Numbers:
        before = self._numbers() or Numbers(spec.cluster.workers, spec.cluster.parameter_servers)
        wishes = {names.WORKERS: numbers.workers, names.SERVERS: numbers.servers}
        self._annotate({name: str(number) for name, number in wishes.items() if number is not None})
        return before

    def wait_for(self, numbers: Numbers) -> str:
        deadline = time.monotonic() + TAKEN_UP_SECS
        while (now := self._numbers()) is None or now.describe_change(numbers):
            if time.monotonic() > deadline:
                return f"as soon as its master runs and reads it; see `sqlflow logs {self.folder.id} master`"
            time.sleep(POLL)
        return ""

    def list_limits(self, before: Numbers, numbers: Numbers) -> tuple[str, ...]:
        return ()

    def _numbers(self) -> Numbers | None:
        """Return the numbers that the job's master has taken up, or None if it shows none."""
        snapshot = read_snapshot(self._objects.status())
        if snapshot is None or not snapshot.workers:
            return None
        return Numbers(snapshot.workers, snapshot.wanted_servers)


def is_held(folder: JobFolder, objects: JobObjects) -> bool:
    """Return True if the master has paused the job at its deadline."""
    program = folder.program / "job.json"
    if folder.status().kind != "train" or not program.is_file():
        return False
    if not from_json(program.read_bytes()).cluster.deadline:
        return False
    snapshot = read_snapshot(objects.status())
    return snapshot is not None and snapshot.paused
