"""Judgement of pods that do not start or end in time. Pure: times are arguments."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from edl.cluster import Instance, Reason
from edl.cluster.kubernetes.deployment import Policy
from edl.cluster.kubernetes.pod_state import (
    is_unscheduled,
    obstacle,
    pending_reason,
)
from edl.cluster.kubernetes.pods import Pod

OVERDUE_SECS = 10.0  # after its grace period, until a pod counts as lost with its node


class GivenUp(msgspec.Struct, frozen=True):
    """End of an instance after its pod was given up. `withdraw` is True if its pod is still to be deleted."""

    reason: Reason
    detail: str
    withdraw: bool = True


@dataclass(frozen=True, slots=True)
class _Wait:
    what: str
    since: float


class PodWaits:
    """Present wait of each pod of a job, with its start."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._waits: dict[str, _Wait] = {}  # by name of the pod
        self._given_up: set[str] = set()  # images that timed out, and that no pod has run with since

    def look(self, pod: Pod, instance: Instance, now: float) -> GivenUp | None:
        """Return a verdict if the pod is given up, or None if it makes progress or may wait longer."""
        what = _waits_for(pod)
        wait = self._waits.get(pod.metadata.name)
        if wait is None or wait.what != what:
            wait = self._waits[pod.metadata.name] = _Wait(what, now)
        match what:
            case "node" if instance.role == "ps" and now - wait.since > self._policy.pending_secs:
                return GivenUp("no room", pending_reason(pod))
            case "obstacle":
                return self._judge_obstacle(pod, now - wait.since)
            case "end" if now - wait.since > (pod.metadata.deletion_grace_period_seconds or 0) + OVERDUE_SECS:
                return GivenUp("lost", "its node does not report its end", withdraw=False)
            case "":
                self._given_up -= {status.image for status in pod.statuses}
        return None

    def forget(self, pod: str) -> None:
        self._waits.pop(pod, None)

    def _judge_obstacle(self, pod: Pod, secs: float) -> GivenUp | None:
        """Return a verdict for a pod with an obstacle.

        After one pod was given up, others with the same image and an obstacle are given up at once, until a pod runs
        with it.
        """
        obstruction = obstacle(pod)
        if obstruction is None:
            return None
        if secs > self._policy.image_secs or obstruction.final:
            self._given_up.add(obstruction.image)
        return GivenUp("failed", obstruction.words) if obstruction.image in self._given_up else None


def _waits_for(pod: Pod) -> str:
    """Return the kind of wait, or an empty text for a running pod."""
    if pod.metadata.deletion_timestamp is not None:
        return "end"
    if pod.status.phase == "Running":
        return ""
    if obstacle(pod) is not None:
        return "obstacle"
    if pod.gates:
        return "gate"  # who set it removes it, which may take hours
    return "node" if is_unscheduled(pod) else "start"
