"""What a followed job waits for, told at once and then every minute, and the masters that will never run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import datetime

from edl.cluster import Instance
from edl.cluster.kubernetes import pod_state
from edl.cluster.kubernetes.pods import Pod
from edl.errors import ClusterError
from edl.jobs.snapshot import Snapshot
from sqlflow_edl.backends.kubernetes import status_text
from sqlflow_edl.backends.kubernetes.job_status import KubernetesJob
from sqlflow_edl.reports.text import duration

AGAIN_SECS = 60.0  # until a wait is told again
ACCOUNT_SECS = 30.0  # for which a service account may be missing
SILENCE_SECS = 10.0  # without a pod of the master until that is told
# Without a line in the log of a master until its status is watched, and then without a change of that.
QUIET_SECS = 15.0
CALM_SECS = 3.0  # without a line, after which its pod is looked at more often
MOST_VAIN = 3  # ends of masters without progress between them after which the job has failed

NO_POD = "the cluster's job controller has not made its pod yet"
NO_NEXT_POD = (
    "the Job has not made its next pod yet, which Kubernetes delays by 10 s, and twice as long each time"
)
HANGS = "is silent: nothing comes from its log and its status; it hangs, or its node does not answer"


class Waits:
    """Waits of one job. `clock` returns seconds. `limit`: seconds that its master may wait."""

    def __init__(
        self, tell: Callable[[str], None], clock: Callable[[], float], limit: float = math.inf
    ) -> None:
        self._tell, self._clock, self._limit = tell, clock, limit
        self._halted: float | None = None  # time since which no master runs
        self._said: set[str] = set()
        self._since: dict[str, float] = {}  # by name
        self._told: dict[str, float] = {}
        self._podless: float | None = None  # time since which there is no pod of a master
        self._had_pod = False  # the master had one, which may be deleted
        self._account: float | None = None  # time since which its account is missing

    def look(self, waits: Iterable[tuple[str, str]]) -> None:
        """Tell who waits and why: each reason once, and each wait again every minute."""
        now, present = self._clock(), dict(waits)
        for name in self._since.keys() - present.keys():
            del self._since[name], self._told[name]
        for name, why in present.items():
            sentence = status_text.sentence(name, why)
            reason = sentence.partition(status_text.PLACE)[0]  # a place in a queue changes often
            since, told = self._since.setdefault(name, now), self._told.setdefault(name, now)
            if reason not in self._said:
                self._said.add(reason)
                self._tell(sentence)
            elif now - told >= AGAIN_SECS:
                self._tell(f"for {duration(now - since)}, {sentence}")
            else:
                continue
            self._told[name] = now

    def check_limit(self, masters: list[Pod], why: str, *, paused: bool) -> ClusterError | None:
        """Return an error if the master has waited for too long, else None. why: the reason of the wait."""
        now = self._clock()
        if paused or any(pod.status.phase == "Running" and not pod.has_ended for pod in masters):
            self._halted = None
            return None
        self._halted = now if self._halted is None else self._halted
        return None if now - self._halted < self._limit else long_wait(self._limit, why)

    def without_pod(self, masters: list[Pod]) -> str:
        """Return why no pod of a master is there or on its way, once that has lasted; empty if there is one."""
        now = self._clock()
        self._had_pod |= bool(masters)
        if any(not pod.has_ended for pod in masters):
            self._podless = None
            return ""
        self._podless = now if self._podless is None else self._podless
        if now - self._podless < SILENCE_SECS:
            return ""
        return NO_NEXT_POD if self._had_pod else NO_POD

    def never(self, why: str) -> ClusterError | None:
        """Return the error of a first master that can never start for this reason, or None if it may."""
        if pod_state.is_never_admitted(why):
            return ClusterError(
                f"the master of the job can never start: {why}",
                hint="ask for less with kubernetes.master_memory and kubernetes.master_cpu, or have the limit of the "
                "namespace raised",
            )
        if not pod_state.lacks_account(why):
            self._account = None
            return None
        now = self._clock()
        self._account = now if self._account is None else self._account
        if now - self._account < ACCOUNT_SECS:
            return None
        return ClusterError(
            f"the master of the job cannot start: {why}",
            hint="name an account of the namespace with kubernetes.service_account; "
            "kubectl get serviceaccounts lists them",
        )


def long_wait(limit: float, why: str) -> ClusterError:
    """Return the error of a wait for the master that has reached its limit."""
    because = f": {why}" if why else ""
    return ClusterError(
        f"the job has waited for its master for {duration(limit)}, and its limit is over{because}",
        hint="kubernetes.wait_secs, or --wait-limit, lets it wait longer; the job was deleted, and its statement can "
        "be run again",
    )


def waits_since(job: KubernetesJob, masters: list[Pod]) -> datetime | None:
    """Return the time since which the master of a job waits, by the dates of its objects; None if none waits."""
    if any(pod.status.phase == "Running" for pod in masters):
        return None
    suspended = job.condition("Suspended")
    dates = [
        job.metadata.creation_timestamp,
        suspended.last_transition_time if suspended is not None else None,
        *(pod.metadata.creation_timestamp for pod in masters if not pod.has_ended),
    ]
    if masters and all(pod.has_ended for pod in masters):  # the Job makes the next one later
        return None
    return max((datetime.fromisoformat(date) for date in dates if date), default=None)


class SilentMaster:
    """Silence of a running master: neither its log nor its status changes. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._heard = clock()  # time of the last line of a log
        self._updated = ""  # date in the last status
        self._changed = 0.0  # time since which the status has that date

    @property
    def has_begun(self) -> bool:
        """True if no line has come for some time."""
        return self._clock() - self._heard >= CALM_SECS

    def begin_anew(self) -> None:
        """Begin anew: a line has come, or no master runs."""
        self._heard = self._clock()
        self._updated = ""

    def has_lasted(self, snapshot: Callable[[], Snapshot | None]) -> bool:
        """Return True if a running master has been silent for too long."""
        now = self._clock()
        if now - self._heard < QUIET_SECS:
            return False
        status = snapshot()
        updated = status.updated if status is not None else ""
        if updated != self._updated:
            self._updated, self._changed = updated, now
        return bool(updated) and now - self._changed >= QUIET_SECS


class VainMasters:
    """Masters that failed in a row without progress of the job."""

    def __init__(self) -> None:
        self._seen: set[str] = set()  # uids of masters that have failed
        self._count = 0
        self._progress: tuple[int, ...] | None = None

    def look(self, masters: list[Pod], snapshot: Callable[[], Snapshot | None]) -> Pod | None:
        """Return the last failed master if it is one too many.

        Those that had failed before the first look count if the job has made no progress at all.
        """
        failed = [pod for pod in masters if _has_failed(pod)]
        new = [pod for pod in failed if pod.metadata.uid not in self._seen]
        self._seen |= {pod.metadata.uid for pod in failed}
        if not new:
            return None
        progress = _progress(snapshot())
        if progress != self._progress:
            self._count, self._progress = 0, progress
            new = new[-1:] if any(progress) else new
        self._count += len(new)
        return new[-1] if self._count >= MOST_VAIN else None


def _has_failed(master: Pod) -> bool:
    if not master.has_ended:
        return False
    reason = pod_state.to_change(master, Instance("master", "worker")).reason
    return reason not in ("done", "preempted", "lost", "stopped")


def _progress(snapshot: Snapshot | None) -> tuple[int, ...]:
    if snapshot is None:
        return (0,)
    return (snapshot.rows, snapshot.step, sum(counts.done for counts in snapshot.tasks.values()))
