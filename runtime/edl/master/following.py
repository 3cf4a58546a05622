"""How the master hears what becomes of instances, also when the cluster cannot be reached for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from edl.cluster import Change, Cluster, Room
from edl.errors import ClusterError

RETRY_SECS = 1.0  # until a cluster that cannot be reached is asked again


def follow(
    cluster: Cluster,
    changed: Callable[[Change | Room], object],
    found: Callable[[list[Change]], object],
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Hand on every change until the cluster is closed, and after a watch that broke, what the cluster lists then."""
    broken = False
    while True:
        try:
            if broken:
                found(cluster.list())
            for change in cluster.watch():
                changed(change)
            return
        except ClusterError:
            broken = True
            pause(RETRY_SECS)
