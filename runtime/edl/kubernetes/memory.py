"""How much memory an instance's pod gets: more than before, after it ran out of it. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import msgspec

from edl.errors import SpecError
from edl.kubernetes.deployment import Policy
from edl.kubernetes.pods import Resources

DEFAULT_LIMIT = 4  # times what the first pod had
_MEBI = 1 << 20
_UNITS = {
    "": Decimal(1),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


class Memory(msgspec.Struct, frozen=True):
    """What a container asks for and may use at most, in bytes; 0: not said."""

    request: int = 0
    limit: int = 0

    def grown(self, policy: Policy, first: Memory) -> Memory:
        """Both times the policy's factor, as far as its limit allows; the request never above the limit."""
        most = read_bytes(policy.memory_limit or "0") or DEFAULT_LIMIT * (first.limit or first.request)
        limit = _grown(self.limit, policy.memory_factor, most)
        request = _grown(self.request, policy.memory_factor, most)
        return Memory(min(request, limit) if limit else request, limit)


def of_container(resources: Resources) -> Memory:
    requests, limits = resources.requests or {}, resources.limits or {}
    return Memory(read_bytes(requests.get("memory", "0")), read_bytes(limits.get("memory", "0")))


def of_manifest(pod: dict[str, Any]) -> Memory:
    """Of the instance in a pod's manifest."""
    told = pod["spec"]["containers"][0].get("resources") or {}
    return of_container(msgspec.convert(told, Resources))


def _grown(size: int, factor: float, most: int) -> int:
    """Never less than it was."""
    return max(size, min(int(size * factor), most)) if most else int(size * factor)


def read_bytes(quantity: str) -> int:
    """Of `512Mi`, `1.5G`, `1e9`. SpecError: it is no quantity."""
    found = re.fullmatch(r"([0-9]+(?:[.][0-9]*)?(?:[eE][+-]?[0-9]+)?)([A-Za-z]{0,2})", quantity)
    if found is None or found[2] not in _UNITS:
        raise SpecError(f"{quantity!r} is no amount of memory", hint="such as 512Mi or 4Gi")
    return int(Decimal(found[1]) * _UNITS[found[2]])


def shown(size: int) -> str:
    """As a quantity, in whole mebibytes where it is that much."""
    return f"{-(-size // _MEBI)}Mi" if size >= _MEBI else str(size)
