"""Group of the first workers of a job, which Kueue admits together: the job starts whole, or waits.

A group has a fixed size and pods that ask for the same, so further workers, and those that ask for more memory or avoid
a node, are admitted alone. A lost member is replaced within the group, which holds its room. When all members have
ended, as after a pause, Kueue takes the group for over, and the next workers form another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from edl.cluster import Instance
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.deployment import Deployment
from edl.cluster.kubernetes.pods import Pod

Key = tuple[str, int]


class PodGroup:
    """Present group of one job. Its name is the name of its first pod."""

    def __init__(self, deployment: Deployment) -> None:
        self._job = deployment.name
        labels = deployment.worker.get("metadata", {}).get("labels", {})
        size = deployment.policy.least_workers
        self._size = size if names.QUEUE in labels and size > 1 else 0
        self._name = ""
        self._members: set[Key] = set()

    def join(self, instance: Instance, has_ended: Callable[[Key], bool]) -> str:
        """Return the name of the group that a new pod belongs to; empty if it is admitted alone."""
        name, _ = instance.key
        if instance.role != "worker" or int(name.rpartition("-")[2]) >= self._size:
            return ""
        if all(map(has_ended, self._members)):
            self._name, self._members = names.pod(self._job, instance), set()
        self._members.add(instance.key)
        return self._name

    def observe(self, pods: Iterable[Pod]) -> None:
        """Take over the group of an earlier master from its pods."""
        for pod in pods:
            if pod.queue_group and pod.instance is not None and not pod.has_ended:
                self._name = pod.queue_group
                self._members.add(pod.instance.key)
