"""Which pods are given up because they do not get on. Pure: the second is handed in."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from edl.cluster import Instance, Reason
from edl.kubernetes.deployment import Policy
from edl.kubernetes.pods import Pod
from edl.kubernetes.reasons import image_error, pending, unscheduled

OVERDUE_SECS = 10.0  # after its grace, that a pod has to be gone; else its node is not there to say so


class GivenUp(msgspec.Struct, frozen=True):
    """How the instance of a pod counts as ended from now on. withdraw: its pod is still to be deleted."""

    reason: Reason
    detail: str
    withdraw: bool = True


@dataclass(frozen=True, slots=True)
class _Wait:
    what: str
    since: float


class Waits:
    """What each pod of a job waits for, and since when."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._waits: dict[str, _Wait] = {}  # by name of the pod
        self._out_of_reach: set[str] = set()  # images that no node got for as long as they may take

    def look(self, pod: Pod, instance: Instance, now: float) -> GivenUp | None:
        """None: it gets on, or may wait longer."""
        what = _waits_for(pod)
        wait = self._waits.get(pod.metadata.name)
        if wait is None or wait.what != what:
            wait = self._waits[pod.metadata.name] = _Wait(what, now)
        match what:
            case "node" if instance.role == "ps" and now - wait.since > self._policy.pending_secs:
                return GivenUp("no room", pending(pod))
            case "image":
                return self._without_image(pod, now - wait.since)
            case "end" if now - wait.since > (pod.metadata.deletion_grace_period_seconds or 0) + OVERDUE_SECS:
                return GivenUp("lost", "its node does not say that it has ended", withdraw=False)
            case "":
                self._out_of_reach -= {status.image for status in pod.statuses}
        return None

    def forget(self, pod: str) -> None:
        self._waits.pop(pod, None)

    def _without_image(self, pod: Pod, secs: float) -> GivenUp | None:
        """Where no pod ran with an image since it was given up, all that need it are given up at once."""
        error = image_error(pod)
        if error is None:
            return None
        if secs > self._policy.image_secs or error.final:
            self._out_of_reach.add(error.image)
        if error.image not in self._out_of_reach:
            return None
        return GivenUp("failed", f"there is no image {error.image}: {error.words}")


def _waits_for(pod: Pod) -> str:
    """Empty: for nothing, it runs."""
    if pod.metadata.deletion_timestamp is not None:
        return "end"
    if pod.status.phase == "Running":
        return ""
    if image_error(pod) is not None:
        return "image"
    return "node" if unscheduled(pod) else "start"
