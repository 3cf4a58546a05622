"""Memory of pods. It grows for the next incarnation after one ran out of it. Pure functions."""

from __future__ import annotations

from typing import Any

import msgspec

from edl.cluster.kubernetes import quantities
from edl.cluster.kubernetes.deployment import Policy
from edl.cluster.kubernetes.pods import Pod, Resources

DEFAULT_LIMIT = 4  # multiple of the initial memory


class Memory(msgspec.Struct, frozen=True):
    """Memory request and limit of a container in bytes, 0 if not set."""

    request: int = 0
    limit: int = 0

    @property
    def size(self) -> int:
        """Effective upper bound: the limit, else the request, else 0."""
        return self.limit or self.request

    def __str__(self) -> str:
        """Return the memory that ran out, in parentheses: `(limit 4Gi)` or `(that of its node)`."""
        if self.limit:
            return f"(limit {quantities.memory(self.limit)})"
        requested = f", of which it requested {quantities.memory(self.request)}" if self.request else ""
        return f"(that of its node{requested})"


class Growth:
    """Growth of memory for the pods of a role: request and limit times the policy's factor, up to its limit."""

    def __init__(self, policy: Policy, manifest: dict[str, Any]) -> None:
        resources = manifest["spec"]["containers"][0].get("resources") or {}
        self.first = read_memory(msgspec.convert(resources, Resources))
        self._factor = policy.memory_factor
        self._most = _bytes(policy.memory_limit) or DEFAULT_LIMIT * self.first.size

    def after(self, had: Memory) -> Memory:
        """Return the memory that follows after `had` ran out. The request never exceeds the limit."""
        limit, request = self._grow(had.limit), self._grow(had.request)
        return Memory(min(request, limit) if limit else request, limit)

    def _grow(self, size: int) -> int:
        more = int(size * self._factor)
        return max(size, min(more, self._most)) if self._most else more


def of_pod(pod: Pod) -> Memory:
    """Return the memory of a pod's instance."""
    return read_memory(pod.spec.containers[0].resources) if pod.spec.containers else Memory()


def read_memory(resources: Resources) -> Memory:
    requests, limits = resources.requests or {}, resources.limits or {}
    return Memory(_bytes(requests.get("memory", "")), _bytes(limits.get("memory", "")))


def _bytes(quantity: str) -> int:
    return int(quantities.value(quantity)) if quantity else 0
