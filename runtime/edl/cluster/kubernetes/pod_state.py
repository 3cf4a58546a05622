"""Translation of a pod's status to a `Change` of its instance. Pure functions."""

from __future__ import annotations

import re
import signal

import msgspec

from edl import exit_codes
from edl.cluster import Change, Instance, Reason
from edl.cluster.exit_reason import Exit, find_reason
from edl.cluster.kubernetes import memory, names
from edl.cluster.kubernetes.pods import Pod
from edl.cluster.kubernetes.quantities import value

LONGEST = 300  # characters of a server's message

_Why = tuple[Reason, str]

# Reasons of the condition DisruptionTarget: a node or the control plane ended the pod.
_DISRUPTIONS: dict[str, _Why] = {
    "PreemptionByScheduler": ("preempted", "a pod of higher priority replaces it"),
    "EvictionByEvictionAPI": ("preempted", "it was evicted"),
    "TerminationByKubelet": ("preempted", "its node evicted it"),
    "DeletionByTaintManager": ("lost", "its node is unreachable or being drained"),
    "DeletionByPodGC": ("lost", "its node is gone"),
}
# The same for `status.reason` of pods. A pod that a node does not admit counts as failed: it may never be.
_ENDS: dict[str, _Why] = {
    "Evicted": ("preempted", "its node evicted it"),
    "Preempting": ("preempted", "its node needs its resources"),
    "Shutdown": ("preempted", "its node shuts down"),
    "NodeShutdown": ("preempted", "its node shuts down"),
    "Terminated": ("preempted", "its node shuts down"),
    "NodeLost": ("lost", "its node is gone"),
    "DeadlineExceeded": ("failed", "it exceeded the deadline of its pod"),
}
# Reasons why a container does not start on its node; the last two are permanent.
_OBSTACLES = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "RegistryUnavailable",
        "ImageInspectError",
        "SignatureValidationFailed",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "InvalidImageName",
    }
)
_FINAL = frozenset({"ErrImageNeverPull", "InvalidImageName"})
_LIMIT_RANGE = re.compile(r"\b(maximum|minimum) \S+ usage per (Container|Pod) is\b")
_QUOTA = re.compile(r"exceeded quota: .*?requested: (.*?), used: .*?, limited: (\S*)")
_AMOUNT = re.compile(r"([\w./-]+)=([^,\s]+)")
_GATED = "SchedulingGated"  # reason of a condition that stays until the scheduler has looked at a pod without gates


class Obstacle(msgspec.Struct, frozen=True):
    """Condition that keeps a container from starting, with its image. `final` is True if it is permanent."""

    image: str
    words: str
    final: bool = False


def to_change(pod: Pod, instance: Instance, *, stopped: bool = False) -> Change:
    """Return the state of a pod's instance. `stopped` is True if this job deleted the pod."""
    if pod.has_ended:
        return _report_end(pod, instance, stopped)
    if pod.status.phase == "Running":
        return Change(instance, "running", pod.place, leaving=not stopped and _is_asked_to_leave(pod))
    return Change(instance, "pending", pod.place, detail=pending_reason(pod))


def _is_asked_to_leave(pod: Pod) -> bool:
    """Return True if the pod is being deleted, or its node is about to end it."""
    target = pod.condition("DisruptionTarget")
    return pod.metadata.deletion_timestamp is not None or (target is not None and target.status == "True")


def report_deleted_pod(pod: Pod, instance: Instance, *, stopped: bool = False) -> Change:
    """Return the end of an instance with a deleted pod; `pod` is the pod's last known version."""
    if pod.has_ended:
        return _report_end(pod, instance, stopped)
    unknown: _Why = ("lost", "its pod was deleted, and its exit code is unknown")
    reason, detail = _disruption(pod) or unknown
    if stopped:
        reason, detail = "stopped", ""
    return Change(instance, "ended", pod.place, reason, None, detail)


def pending_reason(pod: Pod) -> str:
    """Return the reason why the pod does not run yet, or an empty text if none is known."""
    if pod.gates:
        return _describe_gates(pod)
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status != "True" and scheduled.reason != _GATED:
        return _cut(scheduled.message or scheduled.reason or "")
    for status in pod.statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.message:
            return _cut(f"{waiting.reason}: {waiting.message}")
    return ""


def _describe_gates(pod: Pod) -> str:
    """Describe the wait of a pod that has gates."""
    if names.QUEUE_GATE in pod.gates:
        return waits_in_queue((pod.metadata.labels or {}).get(names.QUEUE, ""))
    return f"waits until its scheduling gate is removed: {', '.join(pod.gates)}"


def waits_in_queue(queue: str) -> str:
    return f"waits in queue {queue}"


def is_unscheduled(pod: Pod) -> bool:
    """Return True if the scheduler found no node so far; of a pod with gates, it has looked for none."""
    if pod.gates:
        return False
    scheduled = pod.condition("PodScheduled")
    return scheduled is not None and scheduled.status == "False" and scheduled.reason != _GATED


def obstacle(pod: Pod) -> Obstacle | None:
    """Return the obstacle to its start, or None if its node has, or is fetching, all that it needs."""
    for status in pod.statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason in _OBSTACLES:
            words = _cut(f"{waiting.reason}: {waiting.message}")
            return Obstacle(status.image, words, waiting.reason in _FINAL)
    return None


def is_never_admitted(refusal: str) -> bool:
    """Return True for a refused pod that asks for more than a LimitRange or all of a quota: no room would help."""
    if _LIMIT_RANGE.search(refusal):
        return True
    match = _QUOTA.search(refusal)
    if match is None:
        return False
    requested, limited = (dict(_AMOUNT.findall(amounts)) for amounts in match.groups())
    try:
        return any(
            value(amount) > value(limited[name]) for name, amount in requested.items() if name in limited
        )
    except ValueError:
        return False


def lacks_account(refusal: str) -> bool:
    """Return True for a pod that is refused because its service account does not exist."""
    return "error looking up service account" in refusal


def ran_out_of_memory(pod: Pod) -> bool:
    """Return True if the instance was killed for lack of memory, False if only a child of it was."""
    return pod.end is not None and pod.end.reason == "OOMKilled" and pod.end.exit_code != 0


def _report_end(pod: Pod, instance: Instance, stopped: bool) -> Change:
    how = _exit(pod)
    reason, detail = _find_reason(pod, how, stopped)
    return Change(instance, "ended", pod.place, reason, how.code if how else None, detail)


def _find_reason(pod: Pod, how: Exit | None, stopped: bool) -> _Why:
    if how is not None and how.starved:
        return "out of memory", f"out of memory {memory.of_pod(pod)}"
    if stopped:
        return "stopped", str(how or "")
    if (disruption := _disruption(pod)) is not None:
        gave_back = how is not None and how.code == exit_codes.PREEMPTED
        return ("preempted" if gave_back else disruption[0]), disruption[1]
    if how is not None and pod.end is not None:
        last = _cut(pod.end.message.strip().rpartition("\n")[2])
        return find_reason(how, asked=False), f"{how}: {last}" if last else str(how)
    return ("failed", _without_end(pod)) if pod.end is None else ("lost", _cut(pod.end.message))


def _disruption(pod: Pod) -> _Why | None:
    """Return the reason if the pod was ended neither by itself nor by this job, else None."""
    status, target = pod.status, pod.condition("DisruptionTarget")
    kueue = pod.condition("TerminationTarget")
    if kueue is not None and kueue.status == "True":
        return "preempted", _cut(f"Kueue ended it: {kueue.message or kueue.reason}")
    if target is not None and target.status == "True":
        reason, words = _DISRUPTIONS.get(
            target.reason or "", ("preempted", target.message or "it was disrupted")
        )
    elif status.reason:
        reason, words = _ENDS.get(status.reason, ("failed", status.reason))
    else:
        return None
    # Its disk limit: the next incarnation would exceed it too.
    if "exceed" in status.message and "limit" in status.message:
        reason = "failed"
    return reason, _cut(f"{words}: {status.message}" if status.message else words)


def _without_end(pod: Pod) -> str:
    """Return the reason for a failed pod in which the instance never ran."""
    for status in pod.status.init_container_statuses or ():
        end = status.state.terminated
        if end is not None and end.exit_code:
            return f"its init container {status.name} ended with exit code {end.exit_code}"
    return _cut(pod.status.message) or "its pod failed before it ran"


def _exit(pod: Pod) -> Exit | None:
    """Return the exit of the instance, or None if it is unknown.

    As in a shell, codes above 128 are signals, and 128 itself is a command that cannot be run.
    """
    end = pod.end
    if end is None or end.reason == "ContainerStatusUnknown":
        return None
    by_signal = 128 < end.exit_code <= 128 + signal.NSIG
    return Exit(128 - end.exit_code if by_signal else end.exit_code, ran_out_of_memory(pod))


def _cut(text: str) -> str:
    """Shorten a text in its middle; the cause is mostly at its end."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[: half - 1]}…{text[-half:]}"
