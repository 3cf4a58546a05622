"""Monitoring of a job on Kubernetes: the master's log is streamed, and the job's objects are polled.

The result comes from the master's log; else from the ConfigMap of its status; else from the Job's conditions. Anything
that breaks in between is resumed: the stream of a log, the master's pod, the connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from edl.cluster.kubernetes import exit_reason
from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError
from edl.cluster.kubernetes.pods import Pod
from edl.cluster.kubernetes.status_map import read_end
from edl.cluster.kubernetes.wishes import wishes_of
from edl.errors import ClusterError
from edl.jobs.event_log import decode_event
from edl.jobs.events import Output
from edl.jobs.failure import Failed, to_error
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.logs import strip_time
from sqlflow_edl.backends.base import Follower, UnseenEndError
from sqlflow_edl.backends.kubernetes import status_text
from sqlflow_edl.backends.kubernetes.job_status import JobObjects, KubernetesJob
from sqlflow_edl.backends.kubernetes.logs.master import DRAIN, MasterLogs

LOOK = 2.0  # seconds between two polls of the objects
START_LOOK = 0.5  # the same until the master runs

End = Outcome | Failed


class Following:
    """Client that follows one job."""

    def __init__(
        self,
        objects: JobObjects,
        job_id: str,
        follower: Follower,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._objects = objects
        self._job_id = job_id
        self._follower = follower
        self._clock = clock
        self._logs = MasterLogs(objects, clock)
        self._said: set[str] = set()
        self._over_at: float | None = None  # time at which the job was seen to be over
        self._has_looked = self._has_seen_job = False
        self._has_started = self._is_queued = False
        self._obstructed_since: float | None = None  # time since which the master cannot start

    def until_end(self) -> Outcome:
        """Return the result of the job.

        Raises the job's own error if it failed, and UnreachableError if the cluster is unreachable from the start.
        """
        try:
            end = self._poll()
            while end is None:
                end = self._wait_for_event() or self._poll()
        finally:
            self._logs.close()
        if isinstance(end, Failed):
            raise to_error(end)
        return end

    def until_start(self) -> None:
        """Wait until a pod of the master runs, has run, or waits in a queue."""
        try:
            end = self._poll()
            while end is None and not (self._has_started or self._is_queued):
                time.sleep(START_LOOK)
                end = self._poll()
        finally:
            self._logs.close()
        if isinstance(end, Failed):
            raise to_error(end)

    def _wait_for_event(self) -> End | None:
        """Process the master's output until the next poll is due; return the end of the job if it is in it."""
        until = self._clock() + (LOOK if self._has_started else START_LOOK)
        while (wait := until - self._clock()) > 0:
            try:
                line = self._logs.next(wait)
            except APIRefusedError as error:
                self._say(f"the {self._objects.deployment.first}'s log cannot be read: {error.message}")
                continue
            if line is None:
                return None
            event = decode_event(line)
            if isinstance(event, Outcome | Failed):
                return event
            if event is not None:
                self._follower.progress(event)
            elif not self._objects.deployment.has_master:
                self._follower.progress(Output((strip_time(line.rstrip()),)))
            elif line.strip():
                self._follower.note(f"master: {strip_time(line.rstrip())}")
        return None

    def _poll(self) -> End | None:
        """Return the end of the job if its objects show it."""
        try:
            job = self._objects.job()
            pods = self._objects.pods() if job is not None else []
            self._has_looked, self._has_seen_job = True, self._has_seen_job or job is not None
            for pod in pods:
                if pod.instance is not None:  # made by a master
                    self._has_started = True
                elif pod.has_ended or pod.status.phase == "Running":
                    self._has_started = True
                    self._logs.read(pod)
            if job is None or job.is_over:
                return self._end(job, pods)
            self._is_queued = bool(job.queue) and job.spec.suspend
            self._say_why_it_waits(job, pods)
            # A job that has started is never given up here.
            why = "" if self._has_started else self._obstacle(pods)
            if why:
                self._objects.delete()  # no controller gives up such a job
                raise ClusterError(f"the {self._objects.deployment.first} of the job cannot start: {why}")
        except APIUnreachableError as error:
            if not self._has_looked:
                raise
            self._say(f"{error.message}; retrying, while the job continues")
        return None

    def _say_why_it_waits(self, job: KubernetesJob, pods: list[Pod]) -> None:
        if wishes_of(job.metadata).paused:
            self._say(f"the job is paused; `sqlflow resume {self._job_id}` continues it")
            return
        for name, why in status_text.list_waiting(self._objects, job, pods):
            self._say(status_text.sentence(name, why))
        for text in status_text.memory_notes(pods):
            self._say(text)

    def _obstacle(self, pods: list[Pod]) -> str:
        """Return the reason why the first master cannot start; empty if it can, or may be able to later."""
        masters = [pod for pod in pods if pod.instance is None and not pod.has_ended]
        obstruction = next(filter(None, map(exit_reason.obstacle, masters)), None)
        if obstruction is None:
            self._obstructed_since = None
            return ""
        now = self._clock()
        self._obstructed_since = now if self._obstructed_since is None else self._obstructed_since
        patience = self._objects.deployment.policy.image_secs
        return obstruction.words if obstruction.final or now - self._obstructed_since > patience else ""

    def _end(self, job: KubernetesJob | None, pods: list[Pod]) -> End | None:
        """Return the end of a finished job from its objects, once its log gives no more."""
        now = self._clock()
        self._over_at = now if self._over_at is None else self._over_at
        if not self._logs.is_last and now < self._over_at + DRAIN:
            return None
        if job is None and self._has_seen_job:
            raise JobCancelledError("the job was deleted from the cluster")
        if job is None:
            raise UnseenEndError("died", status_text.GONE)
        end = read_end(self._objects.status())
        if end is None and job.condition("Complete") is not None:
            raise UnseenEndError(
                "done", status_text.SILENT, "check its results with SHOW MODELS, or in its table"
            )
        if end is None:
            raise status_text.failure(job, pods, self._job_id)
        return end

    def _say(self, text: str) -> None:
        """Report each message once."""
        if text not in self._said:
            self._said.add(text)
            self._follower.note(text)
