"""Handle of a job on Kubernetes. The job's folder holds its deployment."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TypeVar

import msgspec

from edl.cluster.kubernetes import names, pod_state
from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError, Calls
from edl.cluster.kubernetes.connect import connect
from edl.cluster.kubernetes.deployment import Deployment, read_deployment
from edl.cluster.kubernetes.pods import Pod
from edl.cluster.kubernetes.status_map import read_end, read_snapshot
from edl.cluster.kubernetes.wishes import wishes_of
from edl.errors import ClusterError, SQLFlowError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.failure import Failed
from edl.jobs.job_folder import KEPT, LONGEST, STARTING, JobFolder, State, Status
from edl.jobs.outcome import JobCancelledError, JobPausedError, Outcome
from edl.jobs.snapshot import Row, Snapshot
from sqlflow_edl.backends import steering
from sqlflow_edl.backends.base import Follower, JobDetails, Numbers, UnseenEndError
from sqlflow_edl.backends.kubernetes import status_text, waiting
from sqlflow_edl.backends.kubernetes.following import Following
from sqlflow_edl.backends.kubernetes.job_status import JobObjects, KubernetesJob, instance_name
from sqlflow_edl.backends.kubernetes.logs.pods import PodLogs
from sqlflow_edl.backends.kubernetes.remains import has_checkpoint, judge_absent
from sqlflow_edl.backends.kubernetes.steering import SteeredKubernetesJob, is_held

T = TypeVar("T")
PATIENCE = 10.0  # seconds to retry an API server that does not answer
END_SECONDS = 90.0  # limit for the pods of a job to end
CANCEL_GRACE = 5  # grace period of pods in seconds: their last results are discarded
POLL = 0.2  # seconds between two polls
NOT_STARTED = "its client ended before it could start the job"


class KubernetesJobHandle:
    """Job on Kubernetes. Raises ClusterError if the cluster is unreachable or refuses a request."""

    def __init__(self, folder: JobFolder) -> None:
        self.folder = folder

    def details(self) -> JobDetails:
        status = self.folder.status()
        if self._deployment is None:  # it was cancelled, or is not deployed yet
            return JobDetails(status if status.is_attended else self._record_end("died", NOT_STARTED))
        try:
            return self._details(status)
        except APIUnreachableError as error:
            return JobDetails(status, notes=(error.message,))
        except APIRefusedError as error:
            if not error.may_pass:
                raise
            remark = self.settle_hidden()
            return JobDetails(self.folder.status(), notes=(remark,) if remark else ())

    def follow(self, follower: Follower) -> Outcome:
        status = self.folder.status()
        if status.state == "cancelled":
            raise JobCancelledError
        following = Following(self._objects, self.folder, follower)
        return self._ending(following, following.until_end, follower, "done")

    def wait_for_start(self, follower: Follower) -> None:
        """Wait until its master runs. Raises the job's error if it ends before."""
        following = Following(self._objects, self.folder, follower)
        self._ending(following, following.until_start, follower)

    def _ending(
        self, following: Following, follow: Callable[[], T], follower: Follower, end: State | None = None
    ) -> T:
        """Follow, and record the job's end. end: the state if there is no error."""
        try:
            result = follow()
        except (APIRefusedError, APIUnreachableError):  # an error of this client, not of the job
            raise
        except JobCancelledError:
            self._record_end("cancelled")
            raise
        except JobPausedError:
            self.folder.update(state="paused")
            raise
        except UnseenEndError as error:
            self._record_end(error.state, "" if error.state == "done" else error.message)
            raise
        except SQLFlowError as error:
            self._record_failure(error.message, has_kept=following.has_kept)
            if self.folder.can_resume:
                is_elsewhere = error.hint == status_text.ELSEWHERE
                how = "move" if is_elsewhere else "resume"
                where = " --to kubernetes --namespace NAME" if is_elsewhere else ""
                follower.note(
                    f"`sqlflow {how} {self.folder.id}{where}` continues the training; for {KEPT.days} days its data "
                    "source has its checkpoint"
                )
            raise
        if end is not None:
            self._record_end(end)
        return result

    can_cancel = True

    def cancel(self) -> None:
        objects = self._objects
        with suppress(APIRefusedError):  # for those who follow it; the Job may be gone
            objects.patch({"metadata": {"annotations": {names.CANCELLED: "true"}}})
        for pod in objects.pods():  # before the Job: a grace period that has begun cannot be shortened
            objects.end(pod, CANCEL_GRACE)
        objects.delete()
        self._record_end("cancelled")
        deadline = time.monotonic() + END_SECONDS
        while left := [pod.metadata.name for pod in objects.pods()]:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"job {self.folder.id} is cancelled, but some of its pods still run: {', '.join(left)}",
                    hint="their node may be unreachable; see kubectl describe pod",
                )
            time.sleep(POLL)

    def pause(self) -> str:
        return steering.pause(self._steered_job)

    def resume(self) -> str:
        if not self.folder.status().is_alive:
            from sqlflow_edl.backends.kubernetes.continuing import (
                resume_failed,  # loads more than other commands need
            )

            return resume_failed(self.folder)
        return self._steered_job.resume()

    def scale(self, numbers: Numbers) -> str:
        return steering.scale(self._steered_job, numbers)

    @property
    def _steered_job(self) -> SteeredKubernetesJob:
        return SteeredKubernetesJob(self.folder, self._objects)

    def pods(self) -> list[Pod]:
        return self._objects.pods()

    def logs(self, instance: str | None, *, follow: bool) -> AbstractContextManager[PodLogs]:
        return PodLogs(self._objects, instance, follow=follow)

    def tail(self, instance: str | None, lines: int) -> list[tuple[str, str]]:
        with self.logs(instance, follow=False) as lines_of_logs:
            return [(name, line.rstrip("\n")) for name, line in deque(lines_of_logs, lines)]

    def settle(self, job: KubernetesJob | None) -> Status:
        """Record the end of the job, if it has ended; return its status. job: None if it is gone from the cluster."""
        status = self.folder.status()
        if status.place == STARTING and (job is None or (job.spec.suspend and not job.queue)):
            if status.is_attended:
                return status
            if job is not None:
                self._objects.delete()
            return self._record_end("died", NOT_STARTED)
        if job is None:
            return self._settle_absent()
        if not job.is_over:
            return self._end_unattended(job) or self._paused_or_running(status, job)
        end = read_end(self._objects.status())
        if isinstance(end, Failed):
            if end.code == JobCancelledError.code:
                return self._record_end("cancelled")
            return self._record_failure(end.message, has_kept=end.kept)
        if job.condition("Failed") is not None:
            return self._record_failure(
                status_text.failure(job, self._objects.pods(), self.folder.id).message
            )
        return self._record_end("done")

    def _end_unattended(self, job: KubernetesJob) -> Status | None:
        """Delete the job, and record that, if nobody followed it while its master waited for too long, or its masters
        ended in vain.
        """
        limit = self._objects.deployment.policy.longest_wait
        may_be_vain = self._objects.deployment.has_master and job.status.failed >= waiting.MOST_VAIN
        if (limit == math.inf and not may_be_vain) or wishes_of(job.metadata).paused:
            return None
        pods = self._objects.pods()
        masters = [pod for pod in pods if pod.instance is None]
        error: ClusterError | None = None
        if may_be_vain:
            last = waiting.VainMasters().look(masters, lambda: read_snapshot(self._objects.status()))
            if last is not None:
                error = status_text.hopeless(self._objects, last, job.status.failed, self.folder.id)
        since = waiting.waits_since(job, masters)
        if since is not None and (datetime.now(UTC) - since).total_seconds() >= limit:
            why = status_text.find_reason(status_text.list_waiting(self._objects, job, pods))
            error = waiting.long_wait(limit, why)
        if error is None:
            return None
        self._objects.delete()
        return self._record_failure(error.message)

    def settle_hidden(self) -> str:
        """Record the end of a job that its user may no longer see, if its data source shows it; else return a remark.

        A user's rights go with a namespace that is deleted, and not everybody may read namespaces.
        """
        end, _ = judge_absent(self.folder)
        if end is not None:
            self._settle_absent()
            return ""
        remark = status_text.hidden_remark(self._objects.deployment.namespace)
        started = datetime.fromisoformat(self.folder.status().started)
        if datetime.now(UTC) - started > LONGEST:  # until then it may run, and needs its rows
            self._record_end("unknown", remark)
            return ""
        return f"{remark}; this was its last known state"

    def _settle_absent(self) -> Status:
        """Record the end of a job that is gone from the cluster; `unknown` if nothing shows it. That is asked again."""
        end, why = judge_absent(self.folder)
        if isinstance(end, Failed):
            return self._record_failure(end.message, has_kept=end.kept)
        if end is None:
            return self._record_end("unknown", why)
        if end.seconds:  # until its model was stored
            ended = datetime.fromisoformat(self.folder.status().started) + timedelta(seconds=end.seconds)
            self.folder.update(ended=ended.isoformat(timespec="milliseconds"))
        return self._record_end("done")

    def _record_failure(self, error: str, *, has_kept: bool = False) -> Status:
        """Record that the job failed, and whether its training can be resumed.

        A job that says nothing of a checkpoint may have one from before: it was resumed or paused, or its pods were
        drained. An absent data source leaves the mark as it is.
        """
        folder = ClusterFolder(self.folder.path)
        is_there = True if has_kept else has_checkpoint(self.folder)
        if is_there:
            folder.mark_kept()
        elif is_there is not None:
            folder.unmark_kept()
        return self._record_end("failed", error)

    def _paused_or_running(self, status: Status, job: KubernetesJob) -> Status:
        """Record whether the job is paused: any user of the cluster may pause and resume it, and its deadline too."""
        is_paused = wishes_of(job.metadata).paused or is_held(self.folder, self._objects)
        state: State = "paused" if is_paused else "running"
        return self.folder.update(state=state) if state != status.state else status

    def _details(self, status: Status) -> JobDetails:
        job = self._objects.job()
        if status.is_alive or status.state == "unknown":
            status = self.settle(job)
        if job is None:
            return JobDetails(status)
        pods = self._objects.pods()
        snapshot = read_snapshot(self._objects.status())
        logs = tuple(dict.fromkeys(map(instance_name, pods)))
        waits = status_text.list_waiting(self._objects, job, pods) if status.is_alive else ()
        notes = [
            *(status_text.sentence(name, why) for name, why in waits),
            *dict.fromkeys(filter(None, map(status_text.end_note, pods))),
        ]
        return JobDetails(status, snapshot, instances(snapshot, pods), logs, tuple(notes))

    def _record_end(self, state: State, error: str = "") -> Status:
        """Record the end, unless one is recorded already."""
        status = self.folder.status()
        is_open = status.is_alive or status.state == "unknown"
        if is_open and state in ("done", "cancelled"):
            ClusterFolder(self.folder.path).unmark_kept()
        return self.folder.end(state, error) if is_open else status

    @property
    def _deployment(self) -> Deployment | None:
        """Deployment of the job, or None if nothing of it can be in the cluster or its client is still creating it."""
        deployment = read_deployment(self.folder.path)
        return (
            deployment
            if deployment is not None and (deployment.uid or not self.folder.status().is_attended)
            else None
        )

    @cached_property
    def _objects(self) -> JobObjects:
        deployment = self._deployment
        if deployment is None:
            status = self.folder.status()
            if status.is_alive:
                raise ClusterError(f"job {self.folder.id} is not in the cluster yet")
            raise ClusterError(f"job {self.folder.id} is {status.state}: its pods and their logs are deleted")
        return JobObjects(Calls(connect(deployment.context), PATIENCE), deployment)


def instances(snapshot: Snapshot | None, pods: list[Pod]) -> tuple[Row, ...]:
    """Return the instances that the master reports, updated from their newest pods."""
    reported = {row.name: row for row in snapshot.instances} if snapshot is not None else {}
    newest = {instance_name(pod): pod for pod in pods}
    seen = sum(pod.instance is None for pod in pods) - 1
    relaunches = snapshot.master_relaunches if snapshot is not None else 0  # deleted pods are not listed
    rows = [_row(pod, reported.get(name), max(seen, relaunches)) for name, pod in newest.items()]
    return (*rows, *(row for name, row in reported.items() if name not in newest))


def _row(pod: Pod, reported: Row | None, relaunches: int) -> Row:
    """Return the row of a pod. relaunches: of the master."""
    instance = pod.instance
    if instance is not None:
        relaunches = instance.incarnation
    if reported is not None and reported.incarnation > relaunches:  # its next pod does not exist yet
        return reported
    role = instance.role if instance is not None else instance_name(pod)
    row = reported or Row(instance_name(pod), role, relaunches, "")
    state = "ended" if pod.has_ended else "running" if pod.status.phase == "Running" else "pending"
    return msgspec.structs.replace(
        row,
        incarnation=relaunches,
        relaunches=relaunches,
        state=state,
        place=pod.place or f"pod {pod.metadata.name}",
        note="; ".join(filter(None, (pod_state.pending_reason(pod) if state == "pending" else "", row.note))),
    )
