"""Reason why a group does not form: the members that one of them cannot reach."""

from __future__ import annotations

from collections.abc import Callable

from edl.collectives.base import GroupError
from edl.reachability import probe
from edl.tasks.protocol import WorkerGroup


def reason(group: WorkerGroup, name: str, error: GroupError, find: Callable[[str], str] = probe) -> str:
    """Describe the members that `name` cannot reach; `error` ended its last attempt to form the group."""
    others = zip(group.members, group.addresses, strict=False)  # a stored group may have no addresses
    by_peer = {f"{other} at {address}": find(address) for other, address in others if other != name}
    if unreached := [f"{other}: {why}" for other, why in by_peer.items() if why]:
        return "; ".join(unreached)
    return f"{', '.join(by_peer) or 'they'} accept connections, and the group does not form: {error}"
