"""Monitoring of a job on Kubernetes: the master's log is streamed, and the job's objects are polled.

The result comes from the master's log; else from the ConfigMap of its status; else from the Job's conditions. Anything
that breaks in between is resumed: the stream of a log, the master's pod, the connection.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress

from edl.cluster.kubernetes import names, pod_state
from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError
from edl.cluster.kubernetes.outage import REFUSAL_SECS, Outage
from edl.cluster.kubernetes.pods import Pod
from edl.cluster.kubernetes.status_map import read_end, read_snapshot
from edl.cluster.kubernetes.wishes import wishes_of
from edl.errors import ClusterError, SQLFlowError
from edl.jobs.event_log import decode_event
from edl.jobs.events import EpochEnd, Output
from edl.jobs.failure import Failed, to_error
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, JobPausedError, Outcome
from edl.logs import strip_time
from sqlflow_edl.backends.base import Follower, UnseenEndError
from sqlflow_edl.backends.kubernetes import status_text
from sqlflow_edl.backends.kubernetes.job_status import JobObjects, KubernetesJob
from sqlflow_edl.backends.kubernetes.logs.master import DRAIN, MasterLogs
from sqlflow_edl.backends.kubernetes.remains import GONE, has_checkpoint, judge_absent
from sqlflow_edl.backends.kubernetes.waiting import HANGS, MOST_VAIN, SilentMaster, VainMasters, Waits
from sqlflow_edl.reports.text import duration

LOOK = 2.0  # seconds between two polls of the objects
START_LOOK = 0.5  # the same until the master runs
# The same while no pod waits and the master's log goes on: it tells what happens, and its end leads to a poll at once.
CALM_LOOK = 10.0
LEAVES = "terminated: "  # of a master that was asked to end
SAME_LOSS = 1e-6  # share by which two sums of the losses of the same tasks may differ
DELETED_SECS = 60.0  # a Job that was seen less than this before it was missed was deleted, while it ran
LEAVING_SECS = 20.0  # for the pods of a deleted namespace to end: they may write a checkpoint before

End = Outcome | Failed


# Lines of gRPC and other libraries, which stay in the log.
_OF_LIBRARY = re.compile(r"[IWEF]\d{4} [\d:.]+\s+\d+ \S+\.cc:\d+\] |WARNING: All log messages before absl::")


class Following:
    """Client that follows one job."""

    def __init__(
        self,
        objects: JobObjects,
        folder: JobFolder,
        follower: Follower,
        clock: Callable[[], float] = time.monotonic,
        date: Callable[[], float] = time.time,  # goes on while this machine sleeps
    ) -> None:
        self._objects = objects
        self._folder = folder
        self._follower = follower
        self._clock = clock
        self._date = date
        self._policy = objects.deployment.policy
        self._logs = MasterLogs(objects, clock)
        self._outage = Outage(clock)
        self._epochs: dict[tuple[int, int, bool], EpochEnd] = {}
        self._said: set[str] = set()
        self._held: Failed | None = None  # last event of a master that has paused the job
        self.has_kept = False  # the failed job has kept a checkpoint, by its last event
        self._waits = Waits(follower.note, clock, self._policy.longest_wait)
        self._vain = VainMasters()
        self._silence = SilentMaster(clock)
        self._ended: set[str] = set()  # uids of masters whose end was told
        self._over_at: float | None = None  # time at which the job was seen to be over
        self._has_looked = False
        self._seen_at: float | None = None  # time at which the Job was last there
        self._has_started = self._is_queued = self._is_calm = False
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
            self.has_kept = end.kept
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
        began = self._clock()
        while (wait := began + self._interval() - self._clock()) > 0:
            try:
                line = self._logs.next(wait)
            except APIRefusedError as error:
                self._say(f"the {self._objects.deployment.first}'s log cannot be read: {error.message}")
                continue
            if line is None:
                return None
            self._silence.begin_anew()
            if (end := self._take_line(line)) is not None:
                return end
        return None

    def _interval(self) -> float:
        """Return the seconds between the last poll and the next one."""
        if self._is_calm and not self._silence.has_begun:
            return CALM_LOOK
        return LOOK if self._has_started else START_LOOK

    def _take_line(self, line: str) -> End | None:
        """Pass on a line of the log: an event, or a text. Return the end of the job if the line is that."""
        event = decode_event(line)
        if isinstance(event, Failed) and event.code == JobPausedError.code:
            self._held = event
        elif isinstance(event, Outcome | Failed):
            return event
        elif isinstance(event, EpochEnd):
            if not self._is_repeated(event):
                self._follower.progress(event)
        elif event is not None:
            self._follower.progress(event)
        elif not self._objects.deployment.has_master:
            self._follower.progress(Output((strip_time(line.rstrip()),)))
        elif line.strip() and not _OF_LIBRARY.match(line):
            self._is_calm = False
            self._note_line(strip_time(line.rstrip()))
        return None

    def _note_line(self, text: str) -> None:
        """Pass on a line of the master's log, unless it leaves because the job was cancelled."""
        if text.startswith(LEAVES):
            with suppress(ClusterError):
                self._check_cancelled(self._objects.job())
        self._follower.note(f"master: {text}")

    def _check_cancelled(self, job: KubernetesJob | None) -> None:
        """Raise JobCancelledError if `sqlflow cancel` was called for the job."""
        annotations = (job.metadata.annotations or {}) if job is not None else {}
        if names.CANCELLED in annotations or self._folder.status().state == "cancelled":
            raise JobCancelledError("cancelled from another terminal")

    def _check_held(self, job: KubernetesJob) -> None:
        """Raise JobPausedError if the master has paused the job at its deadline, and nobody has resumed it since.

        The event has the last resumption before as its hint.
        """
        resumed = (job.metadata.annotations or {}).get(names.RESUMED, "")
        if self._held is not None and self._held.hint == resumed:
            job_id = self._folder.id
            raise JobPausedError(
                f"{self._held.message}; it is paused",
                hint=f"`sqlflow resume {job_id}` continues the training, `sqlflow cancel {job_id}` ends it",
            )

    def _is_repeated(self, end: EpochEnd) -> bool:
        """Return True if an earlier master has told of the same end of an epoch: it could not store that it had."""
        key = end.epoch, end.step, end.final
        before = self._epochs.setdefault(key, end)
        if before is end:
            return False
        self._epochs[key] = end
        if before.loss is None or end.loss is None:
            return before.loss is end.loss
        return math.isclose(before.loss, end.loss, rel_tol=SAME_LOSS)

    def _poll(self) -> End | None:
        """Return the end of the job if its objects show it."""
        began = self._clock()
        try:
            job = self._objects.job()
            pods = self._objects.pods() if job is not None else []
            self._on_answer(job)
            self._check_cancelled(job)
            for pod in pods:
                if pod.instance is not None:  # made by a master
                    self._has_started = True
                elif pod.has_ended or pod.status.phase == "Running":
                    self._has_started = True
                    self._logs.read(pod)
            if job is None or job.is_over:
                return self._end(job, pods)
            self._check_held(job)
            self._is_queued = bool(job.queue) and job.spec.suspend
            masters = [pod for pod in pods if pod.instance is None]
            self._say_why_it_waits(job, pods, masters)
            self._give_up_vain_masters(masters)
            # A job that has started is never given up here.
            why = "" if self._has_started else self._obstacle(pods)
            if why:
                self._objects.delete()  # no controller gives up such a job
                raise status_text.no_start(self._objects.deployment.first, why)
        except APIUnreachableError as error:
            self._on_outage(error, began)
        except APIRefusedError as error:
            if not error.may_pass:
                raise
            self._on_outage(error, began)
        return None

    def _on_answer(self, job: KubernetesJob | None) -> None:
        self._has_looked = True
        if job is not None:
            self._seen_at = self._date()
        if secs := self._outage.on_answer():
            self._follower.note(f"the API server of the cluster answers again, after {duration(secs)}")

    def _on_outage(self, error: APIRefusedError | APIUnreachableError, began: float) -> None:
        """Tell that the API server does not answer. Raises the error if that has lasted too long, or ever since.

        A refusal of what was allowed before is part of an outage for a minute.
        """
        self._is_calm = False
        refused = isinstance(error, APIRefusedError)
        if not self._has_looked or (refused and self._seen_at is None):
            raise error
        if refused and self._objects.is_namespace_ending():
            raise self._deletion()
        is_due = self._outage.on_failure(began, refused=refused)
        if self._outage.refused_secs > REFUSAL_SECS:
            if has_checkpoint(self._folder):  # pods that were not asked to end would have kept none
                raise status_text.hidden_job(self._objects.deployment.namespace)
            raise error
        if self._outage.secs > self._policy.longest_outage:
            raise error
        if is_due:
            lasts = duration(self._outage.secs)
            self._follower.note(f"{error.message}; that for {lasts}; retrying, while the job continues")

    def _say_why_it_waits(self, job: KubernetesJob, pods: list[Pod], masters: list[Pod]) -> None:
        """Tell who waits. Raises ClusterError if the first master can never start, or one has waited for too long."""
        if wishes_of(job.metadata).paused:
            self._waits.check_limit(masters, "", paused=True)
            self._say(f"the job is paused; `sqlflow resume {self._folder.id}` continues it")
            return
        waits = list(status_text.list_waiting(self._objects, job, pods))
        self._is_calm = (
            self._has_started
            and not waits
            and not self._logs.is_last
            and any(pod.status.phase == "Running" for pod in masters)
        )
        if not self._has_started:
            for why in (why for name, why in waits if name == status_text.MASTER):
                if (error := self._waits.never(why)) is not None:
                    self._objects.delete()  # no controller gives up such a job
                    raise error
        if not job.spec.suspend and not waits and (why := self._waits.without_pod(masters)):
            waits.append((status_text.MASTER, why))
        self._waits.look([*waits, *self._list_silent(masters)])
        why = status_text.find_reason(waits)
        if (error := self._waits.check_limit(masters, why, paused=False)) is not None:
            self._objects.delete()
            raise error
        for pod in masters:
            if pod.metadata.uid not in self._ended and (text := status_text.end_note(pod)):
                self._ended.add(pod.metadata.uid)
                self._follower.note(text)

    def _list_silent(self, masters: list[Pod]) -> list[tuple[str, str]]:
        """Return the master with what to say of it if it runs and is silent."""
        runs = any(pod.status.phase == "Running" and not pod.has_ended for pod in masters)
        if not runs or not self._objects.deployment.has_master:
            self._silence.begin_anew()
        elif self._silence.has_lasted(lambda: read_snapshot(self._objects.status())):
            return [(status_text.MASTER, HANGS)]
        return []

    def _give_up_vain_masters(self, masters: list[Pod]) -> None:
        """Delete the job and raise its error if its masters end one after another without progress."""
        if not self._objects.deployment.has_master:
            return
        last = self._vain.look(masters, lambda: read_snapshot(self._objects.status()))
        if last is not None:
            error = status_text.hopeless(self._objects, last, MOST_VAIN, self._folder.id)
            self._objects.delete()
            raise error

    def _obstacle(self, pods: list[Pod]) -> str:
        """Return the reason why the first master cannot start; empty if it can, or may be able to later."""
        masters = [pod for pod in pods if pod.instance is None and not pod.has_ended]
        obstruction = next(filter(None, map(pod_state.obstacle, masters)), None)
        if obstruction is None:
            self._obstructed_since = None
            return ""
        now = self._clock()
        self._obstructed_since = now if self._obstructed_since is None else self._obstructed_since
        patience = self._policy.image_secs
        return obstruction.words if obstruction.final or now - self._obstructed_since > patience else ""

    def _end(self, job: KubernetesJob | None, pods: list[Pod]) -> End | None:
        """Return the end of a finished job from its objects, once its log gives no more."""
        now = self._clock()
        self._over_at = now if self._over_at is None else self._over_at
        if not self._logs.is_last and now < self._over_at + DRAIN:
            return None
        if job is None:
            return self._judge_absent()
        end = read_end(self._objects.status())
        if end is None and job.condition("Complete") is not None:
            raise UnseenEndError(
                "done", status_text.SILENT, "check its results with SHOW MODELS, or in its table"
            )
        if end is None:
            raise status_text.failure(job, pods, self._folder.id)
        return end

    def _judge_absent(self) -> End:
        """Return the end of a job that is gone, by what it left. It was deleted if it ran when it was last seen."""
        end, why = judge_absent(self._folder)
        if end is not None:
            return end
        status = self._folder.status()
        if status.state == "done":
            raise UnseenEndError("done", f"the job is done, and {GONE}")
        if status.state == "failed":
            raise ClusterError(status.error)
        if self._seen_at is not None and self._date() - self._seen_at < DELETED_SECS:
            raise self._deletion()
        raise UnseenEndError("unknown", why)

    def _deletion(self) -> SQLFlowError:
        """Return the error of a job that ran until it was deleted from the cluster.

        Whoever deletes a namespace means all that is in it, so its training may go on elsewhere.
        """
        if not self._objects.is_namespace_ending():
            return JobCancelledError("the job was deleted from the cluster")
        self._wait_for_pods()
        return status_text.without_namespace(self._objects.deployment.namespace)

    def _wait_for_pods(self) -> None:
        """Wait until no pod of the job runs, for a while at most."""
        until = self._clock() + LEAVING_SECS
        with suppress(ClusterError):
            while self._clock() < until and any(not pod.has_ended for pod in self._objects.pods()):
                time.sleep(START_LOOK)

    def _say(self, text: str) -> None:
        """Report each message once."""
        if text not in self._said:
            self._said.add(text)
            self._follower.note(text)
