"""The Job controller: makes the pods of Jobs, counts them, and says when a Job is complete or has failed.

What it does with several pods is simple: `parallelism` at a time until `completions` have succeeded. It has no indexes,
no failure policies and no time to live.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.kinds import JOB, POD, Key, Object
from tests.kubernetes.registry import TERMINAL, Deletion, Registry

TRACKING = "batch.kubernetes.io/job-tracking"
ENDS = {"Complete", "Failed"}
REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")
EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")


@dataclass
class Pods:
    """Of one Job, those that are still counted by their finalizer."""

    active: list[Object]
    terminating: list[Object]
    succeeded: list[Object]
    failed: list[Object]

    @property
    def ready(self) -> int:
        return sum(_is_ready(pod) for pod in self.active)


class Jobs:
    def __init__(self, registry: Registry, pace: Pace) -> None:
        self._registry, self._pace = registry, pace
        self._seen = 0
        self._due: dict[Key, float] = {}

    def step(self, now: float) -> float:
        store = self._registry.store
        changes, self._seen = store.since(self._seen), store.revision
        for change in changes:
            if change.key.kind is JOB:
                previous = change.previous or {}
                is_new = previous.get("spec") != change.object["spec"] or change.type == "DELETED"
                is_new = is_new or "deletionTimestamp" in change.object["metadata"]
                self._plan(change.key, now if is_new else now + self._pace.count)
            elif change.key.kind is POD and (owner := _owner(change.object)):
                self._plan(Key(JOB, change.key.namespace, owner["name"]), now + self._pace.count)
        for key in [key for key, due in self._due.items() if due <= now]:
            del self._due[key]
            self._sync(key, now)
        return min(self._due.values(), default=NEVER)

    def _plan(self, key: Key, due: float) -> None:
        self._due[key] = min(due, self._due.get(key, NEVER))

    def _sync(self, key: Key, now: float) -> None:
        job = self._registry.store.get(key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            held = [
                pod for pod in self._pods_of(key, job) if TRACKING in pod["metadata"].get("finalizers", [])
            ]
            for pod in held:
                self._let_go(pod)
            if held:
                self._plan(key, now + self._pace.count)
                return
        if job is None or _is_over(job):
            return
        pods = self._counted(key, job)
        if job["spec"]["suspend"] or "deletionTimestamp" in job["metadata"]:
            self._stop(key, job, pods)
        elif outcome := _outcome(job, pods):
            self._end(key, job, pods, *outcome)
        else:
            self._go_on(key, job, pods)

    def _pods_of(self, key: Key, job: Object | None) -> list[Object]:
        found = [
            pod
            for pod in self._registry.store.all(POD, key.namespace)
            if (_owner(pod) or {}).get("name") == key.name
        ]
        return [pod for pod in found if job is None or _owner(pod)["uid"] == job["metadata"]["uid"]]

    def _counted(self, key: Key, job: Object) -> Pods:
        pods = self._pods_of(key, job)
        alive = [pod for pod in pods if pod["status"]["phase"] not in TERMINAL]
        counted = [pod for pod in pods if TRACKING in pod["metadata"].get("finalizers", [])]
        return Pods(
            active=[pod for pod in alive if "deletionTimestamp" not in pod["metadata"]],
            terminating=[pod for pod in alive if "deletionTimestamp" in pod["metadata"]],
            succeeded=[pod for pod in counted if pod["status"]["phase"] == "Succeeded"],
            failed=[pod for pod in counted if pod["status"]["phase"] == "Failed"],
        )

    def _go_on(self, key: Key, job: Object, pods: Pods) -> None:
        done = job["status"].get("succeeded", 0) + len(pods.succeeded)
        missing = job["spec"].get("completions", job["spec"]["parallelism"]) - done
        wanted = min(job["spec"]["parallelism"], missing) - len(pods.active)
        for _ in range(wanted):
            pods.active.append(self._create_pod(key, job))
        status = self._count(key, job, pods)
        if any(
            one["type"] == "Suspended" and one["status"] == "True" for one in status.get("conditions", [])
        ):
            resumed = self._condition("Suspended", "JobResumed", "Job resumed", status="False")
            status["conditions"] = [one for one in status["conditions"] if one["type"] != "Suspended"] + [
                resumed
            ]
        status.setdefault("startTime", self._registry.clock.stamp())
        self._write(key, status)

    def _stop(self, key: Key, job: Object, pods: Pods) -> None:
        for pod in pods.active:
            self._let_go(pod)
            if job["spec"]["suspend"]:
                self._registry.delete(_key(pod), Deletion())
        stopped = Pods([], [*pods.active, *pods.terminating], pods.succeeded, pods.failed)
        status = self._count(key, job, stopped)
        conditions = status.get("conditions", [])
        is_said = any(one["type"] == "Suspended" and one["status"] == "True" for one in conditions)
        if job["spec"]["suspend"] and not is_said:
            told = self._condition("Suspended", "JobSuspended", "Job suspended")
            status["conditions"] = [one for one in conditions if one["type"] != "Suspended"] + [told]
        self._write(key, status)

    def _end(self, key: Key, job: Object, pods: Pods, condition: str, why: tuple[str, str]) -> None:
        """First the criterion and who is not counted yet, then the counts and the end itself."""
        for pod in pods.active:
            self._registry.delete(_key(pod), Deletion())
        criterion = "SuccessCriteriaMet" if condition == "Complete" else "FailureTarget"
        status = {**job["status"], "conditions": list(job["status"].get("conditions", []))}
        status.pop("active", None)
        status["conditions"].append(self._condition(criterion, *why))
        waiting = {
            "succeeded": [_uid(pod) for pod in pods.succeeded],
            "failed": [_uid(pod) for pod in pods.failed],
        }
        uncounted = {name: uids for name, uids in waiting.items() if uids}
        status |= {"terminating": 0, "uncountedTerminatedPods": uncounted, "ready": 0}
        self._write(key, status)
        counted = self._count(key, {**job, "status": status}, Pods([], [], pods.succeeded, pods.failed))
        counted["conditions"] = [*counted["conditions"], self._condition(condition, *why)]
        if condition == "Complete":
            counted["completionTime"] = self._registry.clock.stamp()
        self._write(key, counted)

    def _count(self, key: Key, job: Object, pods: Pods) -> Object:
        """The status, with pods that have ended counted once: their finalizer goes with that."""
        status = {name: value for name, value in job["status"].items() if name != "active"}
        for name, ended in (("succeeded", pods.succeeded), ("failed", pods.failed)):
            if ended:
                status[name] = status.get(name, 0) + len(ended)
            for pod in ended:
                self._let_go(pod)
        if pods.active:
            status["active"] = len(pods.active)
        return {
            **status,
            "terminating": len(pods.terminating),
            "uncountedTerminatedPods": {},
            "ready": pods.ready,
        }

    def _write(self, key: Key, status: Object) -> None:
        self._registry.update(key, {"status": status}, "status")

    def _condition(self, name: str, reason: str, message: str, status: str = "True") -> Object:
        stamp = self._registry.clock.stamp()
        times = {"lastProbeTime": stamp, "lastTransitionTime": stamp}
        return {"type": name, "status": status, **times, "reason": reason, "message": message}

    def _create_pod(self, key: Key, job: Object) -> Object:
        template, metadata = job["spec"]["template"], job["metadata"]
        owner = {"apiVersion": JOB.api_version, "kind": JOB.name, "name": key.name, "uid": metadata["uid"]}
        made = {
            name: value for name, value in template["metadata"].items() if name in ("labels", "annotations")
        }
        made |= {"generateName": f"{key.name}-", "finalizers": [TRACKING]}
        made["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
        return self._registry.create(POD, key.namespace, {"metadata": made, "spec": template["spec"]})

    def _let_go(self, pod: Object) -> None:
        """Without the finalizer, a pod that is to be deleted can go."""
        if TRACKING not in pod["metadata"].get("finalizers", []):
            return

        def without(found: Object) -> Object:
            finalizers = [one for one in found["metadata"]["finalizers"] if one != TRACKING]
            return {**found, "metadata": {**found["metadata"], "finalizers": finalizers}}

        self._registry.patch(_key(pod), without)


def _outcome(job: Object, pods: Pods) -> tuple[str, tuple[str, str]] | None:
    spec, status = job["spec"], job["status"]
    succeeded = status.get("succeeded", 0) + len(pods.succeeded)
    if "completions" in spec and succeeded >= spec["completions"]:
        return "Complete", REACHED
    if status.get("failed", 0) + len(pods.failed) > spec["backoffLimit"]:
        return "Failed", EXCEEDED
    return None


def _is_over(job: Object) -> bool:
    return any(one["type"] in ENDS and one["status"] == "True" for one in job["status"].get("conditions", []))


def _is_ready(pod: Object) -> bool:
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", [])
    )


def _owner(pod: Object) -> Object:
    """The Job that made it; empty if none did."""
    references = pod["metadata"].get("ownerReferences") or []
    return next((one for one in references if one.get("controller") and one["kind"] == JOB.name), {})


def _key(pod: Object) -> Key:
    return Key(POD, pod["metadata"]["namespace"], pod["metadata"]["name"])


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])
