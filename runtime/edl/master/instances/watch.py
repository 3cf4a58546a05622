"""Subscription to instance changes that survives failures of the cluster's API."""

from __future__ import annotations

import time
from collections.abc import Callable

from edl.cluster import Change, Cluster, Order, Room
from edl.errors import ClusterError, SQLFlowError

RETRY_SECS = 1.0  # seconds between two attempts to reach the cluster


def follow(
    cluster: Cluster,
    changed: Callable[[Change | Room | Order], object],
    report: Callable[[list[Change]], object],
    pause: Callable[[float], object] = time.sleep,
    failed: Callable[[SQLFlowError], object] = lambda error: None,
) -> None:
    """Pass on changes and orders until the cluster is closed; after a broken watch, the cluster's list first.

    `failed` gets an error after which there is nothing to follow: the job's account may not list its pods.
    """
    broken = False
    while True:
        try:
            if broken:
                report(cluster.list())
            for change in cluster.watch():
                changed(change)
            return
        except ClusterError:
            broken = True
            pause(RETRY_SECS)
        except SQLFlowError as error:
            failed(error)
            return
