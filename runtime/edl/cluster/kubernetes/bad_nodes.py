"""Nodes that the job avoids, because its instances have failed on them while others did not on other nodes."""

from __future__ import annotations

from collections import Counter

from edl.cluster import Change

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
