"""What a Job says about failures and indexes: pure functions of its spec, its status and its pods."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from tests.kubernetes.clock import moment
from tests.kubernetes.job_pods import Pods, failures_of, index_of
from tests.kubernetes.kinds import Object

LONGEST = 60  # times the first delay


class Reason(NamedTuple):
    """Why a Job has ended."""

    reason: str
    message: str


class Verdict(NamedTuple):
    """What the rule that fits a failed pod says: Ignore, Count, FailIndex, FailJob, or "" where none fits."""

    action: str = ""
    message: str = ""


REACHED = Reason("CompletionsReached", "Reached expected number of succeeded pods")
BACKOFF = Reason("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = Reason("DeadlineExceeded", "Job was active longer than specified deadline")
INDEXES = Reason("FailedIndexes", "Job has failed indexes")
MANY_INDEXES = Reason(
    "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)


def verdict(job: Object, pod: Object) -> Verdict:
    if pod["status"]["phase"] != "Failed":
        return Verdict()
    for number, rule in enumerate(job["spec"].get("podFailurePolicy", {}).get("rules", [])):
        fits = _fits(rule, pod)
        if fits:
            return Verdict(rule["action"], f"{fits} matching {rule['action']} rule at index {number}")
    return Verdict()


def _fits(rule: Object, pod: Object) -> str:
    """How the rule fits; empty if it does not."""
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if "onExitCodes" in rule:
        wanted = rule["onExitCodes"]
        for container, code in _exit_codes(pod):
            is_meant = wanted.get("containerName") in (None, container)
            if is_meant and (code in wanted["values"]) == (wanted["operator"] == "In"):
                return f"Container {container} for pod {name} failed with exit code {code}"
    for pattern in rule.get("onPodConditions", []):
        for one in pod["status"].get("conditions", []):
            if (one["type"], one["status"]) == (pattern["type"], pattern["status"]):
                return f"Pod {name} has condition {one['type']}"
    return ""


def _exit_codes(pod: Object) -> list[tuple[str, int]]:
    """Of containers that failed."""
    status = pod["status"]
    containers = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
    states = [(one["name"], one["state"].get("terminated", {})) for one in containers]
    return [(name, state["exitCode"]) for name, state in states if state.get("exitCode")]


def failure(job: Object, pods: Pods, now: float) -> Reason | None:
    """Why the Job is to fail, if it is."""
    spec, status = job["spec"], job["status"]
    for one in status.get("conditions", []):
        if one["type"] == "FailureTarget":
            return Reason(one["reason"], one["message"])
    for pod in pods.failed:
        found = verdict(job, pod)
        if found.action == "FailJob":
            return Reason("PodFailurePolicy", found.message)
    failed = status.get("failed", 0) + sum(verdict(job, pod).action != "Ignore" for pod in pods.failed)
    if failed > spec["backoffLimit"] or _restarts_too_often(spec, pods):
        return BACKOFF
    if now >= deadline(job):
        return DEADLINE
    return _failed_by_index(job, pods) if "backoffLimitPerIndex" in spec else None


def _restarts_too_often(spec: Object, pods: Pods) -> bool:
    if spec["template"]["spec"]["restartPolicy"] != "OnFailure":
        return False
    containers = [one for pod in pods.active for one in pod["status"].get("containerStatuses", [])]
    restarts = sum(int(one["restartCount"]) for one in containers)
    return restarts > 0 and restarts >= int(spec["backoffLimit"])


def deadline(job: Object) -> float:
    spec = job["spec"]
    if "activeDeadlineSeconds" not in spec or spec["suspend"] or "startTime" not in job["status"]:
        return float("inf")
    return moment(job["status"]["startTime"]) + float(spec["activeDeadlineSeconds"])


def _failed_by_index(job: Object, pods: Pods) -> Reason | None:
    spec, failed = job["spec"], failed_indexes(job, pods)
    if len(failed) > spec.get("maxFailedIndexes", spec["completions"]):
        return MANY_INDEXES
    done = failed | succeeded_indexes(job, pods)
    return INDEXES if failed and len(done) == spec["completions"] else None


def is_complete(job: Object, pods: Pods) -> bool:
    spec, status = job["spec"], job["status"]
    if is_indexed(job):
        return len(succeeded_indexes(job, pods)) == spec["completions"]
    succeeded = status.get("succeeded", 0) + len(pods.succeeded)
    if "completions" in spec:
        return bool(succeeded >= spec["completions"])
    return succeeded > 0 and not pods.active


def is_indexed(job: Object) -> bool:
    return bool(job["spec"]["completionMode"] == "Indexed")


def succeeded_indexes(job: Object, pods: Pods) -> set[int]:
    counted = indexes(job["status"].get("completedIndexes", ""))
    return counted | {index_of(pod) for pod in pods.succeeded}


def failed_indexes(job: Object, pods: Pods) -> set[int]:
    """Of a Job that limits the failures of each."""
    counted, limit = indexes(job["status"].get("failedIndexes", "")), job["spec"]["backoffLimitPerIndex"]
    for pod in pods.failed:
        action = verdict(job, pod).action
        if action == "FailIndex" or (action != "Ignore" and failures_of(pod) >= limit):
            counted.add(index_of(pod))
    return counted


def to_be_replaced(job: Object, pods: Pods) -> dict[int, Object]:
    """By index, the pod that failed last and has no successor: what is counted against the index stands on it."""
    given_up, found = failed_indexes(job, pods), dict[int, Object]()
    for pod in sorted(pods.failed, key=failures_of):
        if index_of(pod) not in given_up:
            found[index_of(pod)] = pod
    for pod in pods.active:
        if index_of(pod) in found and pod["metadata"]["uid"] != found[index_of(pod)]["metadata"]["uid"]:
            del found[index_of(pod)]
    return found


def delay(first: float, failures: int) -> float:
    """Seconds from the last failure to the next attempt."""
    return min(first * 2 ** (failures - 1), first * LONGEST) if failures else 0.0


def ended_at(pod: Object) -> float:
    """In whole seconds, as its containers say it."""
    states = [one["state"].get("terminated", {}) for one in pod["status"].get("containerStatuses", [])]
    times = [moment(state["finishedAt"]) for state in states if state.get("finishedAt")]
    return (
        max(times)
        if times
        else moment(pod["metadata"].get("deletionTimestamp", pod["metadata"]["creationTimestamp"]))
    )


def indexes(text: str) -> set[int]:
    """Of `0,2-4`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def shown(found: Iterable[int]) -> str:
    """As a Job's status tells them: runs of three and more as `2-4`."""
    ordered = sorted(found)
    if not ordered:
        return ""
    starts = [ordered[0], *(after for before, after in pairwise(ordered) if after != before + 1)]
    ends = [*(before for before, after in pairwise(ordered) if after != before + 1), ordered[-1]]
    return ",".join(_run(first, last) for first, last in zip(starts, ends, strict=True))


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}{',' if last == first + 1 else '-'}{last}"
