"""The Job controller: makes the pods of Jobs, counts them, and says when a Job is complete or has failed."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.kubernetes import job_policies as policies
from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.errors import RefusedError
from tests.kubernetes.events import Events
from tests.kubernetes.job_pods import (
    JobPods,
    Pods,
    failures_of,
    index_of,
    is_terminating,
    is_tracked,
    owner_of,
    sorted_out,
    to_remove,
)
from tests.kubernetes.job_policies import Reason
from tests.kubernetes.kinds import JOB, POD, Key, Object
from tests.kubernetes.registry import Registry
from tests.kubernetes.selectors import matches_labels

ENDS = {"Complete", "Failed"}


@dataclass
class Failures:
    """Of a Job's pods since one succeeded: how many, and when the last was."""

    count: int = 0
    last: float = 0.0
    counted: set[str] = field(default_factory=set)  # uids


@dataclass
class Round:
    """One look at a Job: how its pods stand, and what its status becomes."""

    key: Key
    job: Object
    pods: Pods
    status: Object
    now: float
    ending: tuple[str, Reason] | None = None  # Complete or Failed, and why


class Jobs:
    def __init__(self, registry: Registry, events: Events, pace: Pace) -> None:
        self._registry, self._events, self._pace = registry, events, pace
        self._pods = JobPods(registry, events)
        self._seen = 0
        self._due: dict[Key, float] = {}
        self._failures: dict[str, Failures] = {}  # by the Job's uid
        self._refused: dict[str, int] = {}  # how often its pods were, in a row

    def step(self, now: float) -> float:
        store = self._registry.store
        changes, self._seen = store.since(self._seen), store.revision
        for change in changes:
            if change.key.kind is JOB:
                previous = change.previous or {}
                is_new = previous.get("spec") != change.object["spec"] or change.type == "DELETED"
                is_new = is_new or is_terminating(change.object)
                self._plan(change.key, now if is_new else now + self._pace.count)
            elif change.key.kind is POD:
                for name in self._concerned(change.key, change.object):
                    self._plan(Key(JOB, change.key.namespace, name), now + self._pace.count)
        for key in [key for key, due in self._due.items() if due <= now]:
            del self._due[key]
            self._sync(key, now)
        return min(self._due.values(), default=NEVER)

    def _concerned(self, key: Key, pod: Object) -> list[str]:
        """The Jobs whose pod it is, or may become."""
        if owner := owner_of(pod):
            return [owner["name"]] if owner["kind"] == JOB.name else []
        labels, jobs = pod["metadata"].get("labels"), self._registry.store.all(JOB, key.namespace)
        return [
            job["metadata"]["name"]
            for job in jobs
            if labels and matches_labels(job["spec"]["selector"], labels)
        ]

    def _plan(self, key: Key, due: float) -> None:
        self._due[key] = min(due, self._due.get(key, NEVER))

    def _sync(self, key: Key, now: float) -> None:
        job = self._registry.store.get(key)
        if job is None:
            for pod in self._pods.left_by(key):
                self._pods.let_go(pod)
            return
        if _is_over(job):
            return
        pods = sorted_out(job, self._pods.of(key, job))
        look = Round(key, job, pods, dict(job["status"]), now)
        if not job["spec"]["suspend"]:
            look.status.setdefault("startTime", self._registry.clock.stamp())
        if why := policies.failure({**job, "status": look.status}, pods, now):
            self._give_up(look, why)
        else:
            self._go_on(look)
        self._count(look)

    def _give_up(self, look: Round, why: Reason) -> None:
        for pod in look.pods.active:
            self._pods.delete(look.job, pod)
        look.pods.terminating += look.pods.active
        look.pods.active = []
        alive = [pod for pod in look.pods.terminating if is_tracked(pod)]
        look.pods.failed += [pod for pod in alive if pod not in look.pods.failed]
        look.ending = "Failed", why

    def _go_on(self, look: Round) -> None:
        job, pods = look.job, look.pods
        if not is_terminating(job):
            self._remember(look)
            self._have_as_many_as_wanted(look)
            self._say_whether_suspended(look)
            self._plan(look.key, policies.deadline({**job, "status": look.status}))
        if policies.is_complete(job, pods):
            look.ending = "Complete", policies.REACHED

    def _have_as_many_as_wanted(self, look: Round) -> None:
        spec, pods = look.job["spec"], look.pods
        wanted = 0 if spec["suspend"] else _wanted(look)
        for pod in to_remove(pods.active, len(pods.active) - wanted):
            self._pods.withdraw(look.job, pod)
            pods.active.remove(pod)
            pods.terminating.append(pod)
        missing = wanted - len(pods.active)
        if spec["podReplacementPolicy"] == "Failed":
            missing -= len(pods.terminating)
        if missing > 0 and not spec["suspend"]:
            uid = look.job["metadata"]["uid"]
            try:
                self._create(look, missing)
                self._refused.pop(uid, None)
            except RefusedError:
                times = self._refused[uid] = self._refused.get(uid, 0) + 1
                self._plan(look.key, look.now + policies.delay(self._pace.refused, times))

    def _create(self, look: Round, missing: int) -> None:
        if not policies.is_indexed(look.job):
            failures = self._failures.get(look.job["metadata"]["uid"], Failures())
            due = failures.last + policies.delay(self._pace.retry, failures.count)
            if due > look.now:
                self._plan(look.key, due)
            else:
                for _ in range(missing):
                    look.pods.active.append(self._pods.create(look.job))
            return
        for index in _free_indexes(look)[:missing]:
            self._create_indexed(look, index)

    def _create_indexed(self, look: Round, index: int) -> None:
        if "backoffLimitPerIndex" not in look.job["spec"]:
            look.pods.active.append(self._pods.create(look.job, index))
            return
        before, failures = policies.to_be_replaced(look.job, look.pods).get(index), 0
        if before is not None:
            is_counted = policies.verdict(look.job, before).action != "Ignore"
            failures = failures_of(before) + is_counted
            due = policies.ended_at(before) + policies.delay(self._pace.retry, failures)
            if due > look.now:
                self._plan(look.key, due)
                return
        look.pods.active.append(self._pods.create(look.job, index, failures))

    def _remember(self, look: Round) -> None:
        """Failures, which the next pod waits for the longer the more there were of them."""
        known = self._failures.setdefault(look.job["metadata"]["uid"], Failures())
        ended = [(policies.ended_at(pod), pod) for pod in (*look.pods.succeeded, *look.pods.failed)]
        for time, pod in sorted(ended, key=lambda one: one[0]):
            if pod["metadata"]["uid"] in known.counted:
                continue
            known.counted.add(pod["metadata"]["uid"])
            known.count = 0 if pod["status"]["phase"] == "Succeeded" else known.count + 1
            known.last = time

    def _say_whether_suspended(self, look: Round) -> None:
        conditions = look.status.get("conditions", [])
        others = [one for one in conditions if one["type"] != "Suspended"]
        is_said = any(one["status"] == "True" for one in conditions if one["type"] == "Suspended")
        if look.job["spec"]["suspend"] and not is_said:
            told = self._condition("Suspended", Reason("JobSuspended", "Job suspended"))
            self._events.of_jobs(look.job, "Suspended", "Job suspended")
        elif is_said and not look.job["spec"]["suspend"]:
            told = self._condition("Suspended", Reason("JobResumed", "Job resumed"), status="False")
            self._events.of_jobs(look.job, "Resumed", "Job resumed")
            look.status["startTime"] = self._registry.clock.stamp()
        else:
            return
        look.status["conditions"] = [*others, told]

    def _count(self, look: Round) -> None:
        """First who has ended and is not counted yet is written down; then they are let go; then they count."""
        pods, status = look.pods, look.status
        released = self._released(look)
        status.pop("active", None)
        status |= {"active": len(pods.active)} if pods.active else {}
        status |= {"terminating": len(pods.terminating), "ready": pods.ready}
        uncounted = self._uncounted(look, released)
        status["uncountedTerminatedPods"] = {name: uids for name, uids in uncounted.items() if uids}
        if look.ending is not None:
            kind, why = look.ending
            criterion = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
            self._add_condition(status, criterion, why)
        written = self._write(look.key, status)
        for pod in released:
            self._pods.let_go(pod)
        status = {**status, "uncountedTerminatedPods": {}}
        for name, uids in uncounted.items():
            if uids:
                status[name] = status.get(name, 0) + len(uids)
        if look.ending is not None and not status["terminating"]:
            self._end(status, written, *look.ending)
        self._write(look.key, status)

    def _released(self, look: Round) -> list[Object]:
        """Pods that need not be tracked any more."""
        pods = look.pods
        released = [*pods.succeeded, *pods.failed]
        if look.ending is not None or is_terminating(look.job):
            alive = [pod for pod in (*pods.active, *pods.terminating) if is_tracked(pod)]
            released += [pod for pod in alive if pod not in released]
        elif "backoffLimitPerIndex" in look.job["spec"]:
            held = policies.to_be_replaced(look.job, pods).values()
            released = [pod for pod in released if pod not in held]
        return released

    def _uncounted(self, look: Round, released: list[Object]) -> dict[str, list[str]]:
        """By what they count as. An indexed Job counts the indexes that succeeded."""
        job, pods, status = look.job, look.pods, look.status
        failed = [pod for pod in pods.failed if pod in released]
        counted = [_uid(pod) for pod in failed if policies.verdict(job, pod).action != "Ignore"]
        if not policies.is_indexed(job):
            return {"succeeded": [_uid(pod) for pod in pods.succeeded], "failed": counted}
        if succeeded := policies.succeeded_indexes(job, pods):
            status |= {"completedIndexes": policies.shown(succeeded), "succeeded": len(succeeded)}
        if "backoffLimitPerIndex" in job["spec"]:
            status["failedIndexes"] = policies.shown(policies.failed_indexes(job, pods))
        return {"failed": counted}

    def _end(self, status: Object, job: Object, kind: str, why: Reason) -> None:
        self._add_condition(status, kind, why)
        if kind == "Complete":
            status["completionTime"] = self._registry.clock.stamp()
            self._events.of_jobs(job, "Completed", "Job completed")
        else:
            self._events.of_jobs(job, why.reason, why.message, "Warning")

    def _add_condition(self, status: Object, name: str, why: Reason) -> None:
        conditions = status.get("conditions", [])
        if not any(one["type"] == name for one in conditions):
            status["conditions"] = [*conditions, self._condition(name, why)]

    def _condition(self, name: str, why: Reason, status: str = "True") -> Object:
        stamp = self._registry.clock.stamp()
        times = {"lastProbeTime": stamp, "lastTransitionTime": stamp}
        return {"type": name, "status": status, **times, "reason": why.reason, "message": why.message}

    def _write(self, key: Key, status: Object) -> Object:
        return self._registry.update(key, {"status": status}, "status")


def _wanted(look: Round) -> int:
    spec, status = look.job["spec"], look.status
    if "completions" not in spec:
        if status.get("succeeded", 0) + len(look.pods.succeeded):
            return len(look.pods.active)
        return int(spec["parallelism"])
    if policies.is_indexed(look.job):
        done = len(policies.succeeded_indexes(look.job, look.pods))
        done += len(policies.indexes(status.get("failedIndexes", "")))
    else:
        done = status.get("succeeded", 0) + len(look.pods.succeeded)
    return int(min(spec["parallelism"], spec["completions"] - done))


def _free_indexes(look: Round) -> list[int]:
    """Which no pod has, and none has done or given up."""
    job, pods = look.job, look.pods
    taken = policies.succeeded_indexes(job, pods) | {index_of(pod) for pod in pods.active}
    if "backoffLimitPerIndex" in job["spec"]:
        taken |= policies.failed_indexes(job, pods)
    if job["spec"]["podReplacementPolicy"] == "Failed":
        taken |= {index_of(pod) for pod in pods.terminating}
    return [index for index in range(job["spec"]["completions"]) if index not in taken]


def _is_over(job: Object) -> bool:
    return any(one["type"] in ENDS and one["status"] == "True" for one in job["status"].get("conditions", []))


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])
