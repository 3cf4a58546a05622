"""Cache of a job's pods in its master: takes versions of pods, returns changes of instances.

Pure: times are arguments, and required actions on pods are queried. A pod is one incarnation of a name, so its name is
never used again.

It also decides which nodes the job avoids (`BadNodes`: its instances failed there while others did not on other
nodes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

import msgspec

from edl.cluster import Change, Instance, Role
from edl.cluster.kubernetes import memory, quantities
from edl.cluster.kubernetes.deployment import Deployment
from edl.cluster.kubernetes.memory import Growth, Memory
from edl.cluster.kubernetes.pod_state import (
    ran_out_of_memory,
    report_deleted_pod,
    to_change,
)
from edl.cluster.kubernetes.pod_waits import GivenUp, PodWaits
from edl.cluster.kubernetes.pods import Pod

MORE = 2  # suggested multiple of memory that did not suffice

Key = tuple[str, int]


@dataclass(slots=True)
class _Known:
    """Last version of a pod, and the last reported change. `superseded` is True if its deletion was requested."""

    pod: Pod
    change: Change
    superseded: bool = False

    @property
    def has_ended(self) -> bool:
        return self.change.state == "ended"


class PodCache:
    """Pods of one job. Not thread-safe."""

    def __init__(self, deployment: Deployment) -> None:
        self._known: dict[Key, _Known] = {}
        self._ends: dict[Key, Change] = {}  # of pods that are gone
        self._stopped: set[Key] = set()
        self._waits = PodWaits(deployment.policy)
        self._nodes = BadNodes(deployment.policy.node_failures)
        self._growth = {role: Growth(deployment.policy, deployment.manifest(role)) for role in get_args(Role)}
        # Memory by name, and the incarnation from which it applies.
        self._memory: dict[str, tuple[int, Memory]] = {}

    # Versions of pods -----------------------------------------------------------------------------------------

    def replace_pods(self, pods: Iterable[Pod]) -> list[Change]:
        """Replace the cache by a complete list; return the state of each name's newest pod, including deleted ones."""
        present = {pod.instance.key: pod for pod in pods if pod.instance is not None}
        changes = [
            change
            for key in self._known.keys() - present.keys()
            if (change := self._delete_pod(key)) is not None
        ]
        for pod in present.values():
            self.update_pod(pod)
        newest: dict[str, Change] = {}
        for change in [*changes, *(entry.change for entry in self._known.values())]:
            before = newest.get(change.instance.name)
            if before is None or before.instance.incarnation < change.instance.incarnation:
                newest[change.instance.name] = change
        return [newest[name] for name in sorted(newest)]

    def update_pod(self, pod: Pod) -> Change | None:
        """Return the change by a new version of an existing pod, or None."""
        instance = pod.instance
        if instance is None:
            return None
        entry = self._known.get(instance.key)
        if entry is not None and entry.has_ended:
            entry.pod = pod
            return None
        change = to_change(pod, instance, stopped=instance.key in self._stopped)
        if ran_out_of_memory(pod):
            change = self._grow(pod, change)
        elif entry is None:
            self._inherit(instance, memory.of_pod(pod))
        if entry is None or entry.change.state != change.state:
            self._nodes.saw(pod.spec.node_name, change)
        self._known[instance.key] = _Known(pod, change)
        return change if entry is None or entry.change != change else None

    def delete_pod(self, pod: Pod) -> Change | None:
        """Return the change by the deletion of a pod, given its last version, or None."""
        if pod.instance is None:
            return None
        self.update_pod(pod)
        return self._delete_pod(pod.instance.key)

    def _delete_pod(self, key: Key) -> Change | None:
        entry = self._known.pop(key)
        stopped = key in self._stopped
        self._stopped.discard(key)
        self._waits.forget(entry.pod.metadata.name)
        end = (
            entry.change
            if entry.has_ended
            else report_deleted_pod(entry.pod, entry.change.instance, stopped=stopped)
        )
        self._ends[key] = end
        return None if entry.has_ended else end

    def end_of(self, key: Key) -> Change | None:
        """Return the end of an instance with a deleted pod, also after its report; None for another instance."""
        return self._ends.get(key)

    def has_ended(self, key: Key) -> bool:
        """Return True if the instance is known to have ended."""
        entry = self._known.get(key)
        return key in self._ends or (entry is not None and entry.has_ended)

    # Required actions -----------------------------------------------------------------------------------------

    def stopping(self, key: Key) -> None:
        """Record that this job deletes the pod, as the reason of its end."""
        self._stopped.add(key)

    def given_up(self, now: float) -> list[tuple[Pod, GivenUp]]:
        """Return stuck pods with verdicts; `give_up` confirms one."""
        return [
            (entry.pod, verdict)
            for entry in self._known.values()
            if not entry.has_ended
            and (verdict := self._waits.look(entry.pod, entry.change.instance, now)) is not None
        ]

    def give_up(self, pod: Pod, verdict: GivenUp) -> Change | None:
        """Count a stuck pod as ended; return the change, or None if it has ended meanwhile."""
        entry = self._known.get(pod.instance.key) if pod.instance is not None else None
        if entry is None or entry.has_ended:
            return None
        entry.change = msgspec.structs.replace(
            entry.change, state="ended", reason=verdict.reason, detail=verdict.detail
        )
        return entry.change

    def list_superseded(self) -> list[Pod]:
        """Return ended pods to delete, each once. The last one of a name is kept for its log until the next runs."""
        newest: dict[str, int] = {}  # last started incarnation by name
        for (name, incarnation), entry in self._known.items():
            if entry.change.state != "pending":
                newest[name] = max(newest.get(name, -1), incarnation)
        pods: list[Pod] = []
        for (name, incarnation), entry in self._known.items():
            if entry.has_ended and not entry.superseded and incarnation < newest[name]:
                entry.superseded = True
                pods.append(entry.pod)
        return pods

    def memory(self, name: str) -> Memory | None:
        """Return the memory of the next pod of a name, or None for its manifest's memory."""
        record = self._memory.get(name)
        return record[1] if record else None

    @property
    def has_run(self) -> bool:
        """True if a pod of an instance has run, as far as is known."""
        return bool(self._ends) or any(entry.change.state != "pending" for entry in self._known.values())

    @property
    def avoided_nodes(self) -> dict[str, int]:
        """Nodes that the next pods avoid, with the failures on them."""
        return self._nodes.avoided_nodes

    @property
    def unfit(self) -> frozenset[str]:
        """Names of the instances that run on nodes to avoid."""
        if not (avoided := self.avoided_nodes):
            return frozenset()
        entries = self._known.values()
        return frozenset(
            entry.change.instance.name
            for entry in entries
            if entry.pod.spec.node_name in avoided and entry.change.state == "running"
        )

    def _inherit(self, instance: Instance, has: Memory) -> None:
        """Remember that a pod has more memory than its manifest, since an earlier one ran out."""
        first = self._growth[instance.role].first
        if has.limit > first.limit or has.request > first.request:
            self._remember(instance.name, instance.incarnation, has)

    def _grow(self, pod: Pod, change: Change) -> Change:
        """Increase the memory of the next pod of a name after this one ran out; return the described change."""
        instance = change.instance
        had = memory.of_pod(pod)
        gets = self._growth[instance.role].after(had)
        self._remember(instance.name, instance.incarnation + 1, gets)
        if not had.size:
            return change
        grows = gets.size > had.size
        follows = (
            f"; the next one gets {quantities.memory(gets.size)}"
            if grows
            else ", which is the permitted maximum"
        )
        enough = quantities.memory(gets.size if grows else MORE * had.size)
        hint = f"WITH kubernetes.{instance.role}_memory = '{enough}' gives each more from the start"
        return msgspec.structs.replace(change, detail=change.detail + follows, hint=hint, remedied=grows)

    def _remember(self, name: str, incarnation: int, gets: Memory) -> None:
        if incarnation >= self._memory.get(name, (-1, gets))[0]:
            self._memory[name] = (incarnation, gets)


FAILURES = ("failed", "killed", "hung")  # reasons of ends that a node may be the cause of


class BadNodes:
    """Counter of the failures on each node of a job. Not thread-safe.

    A node with `limit` failures is avoided, unless every node that the job knows has as many: then the nodes are not
    the cause. 0 avoids none. Another master counts anew.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._failures: Counter[str] = Counter()
        self._known: set[str] = set()

    @property
    def avoided_nodes(self) -> dict[str, int]:
        """Nodes to avoid, sorted by name, with the failures on them."""
        bad = {node for node, failures in self._failures.items() if self._limit and failures >= self._limit}
        return {node: self._failures[node] for node in sorted(bad)} if bad < self._known else {}

    def saw(self, node: str, change: Change) -> None:
        """Count an instance that runs or has ended on the node; call it once for each state."""
        if not node:
            return
        self._known.add(node)
        if change.state == "ended" and change.reason in FAILURES:
            self._failures[node] += 1
