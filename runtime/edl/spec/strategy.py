"""Strategies by which the instances of a training share the work, and the defaults of missing settings.

local       one worker, which holds the parameters
allreduce   every worker holds them; a step applies all workers' gradients together
async       parameter servers hold them; a worker's gradients are applied when they arrive
sync        the same, with steps of the gradients of several workers
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from edl.spec.job import Cluster, Strategy

WORKERS_PER_SERVER = 2
FIRST_WORKERS = 2  # of an automatic number

# Minimum bytes of embedding rows, including slots, for which several workers use parameter servers. In all-reduce
# each worker holds all of them, and a new worker receives all of them while the others wait: 0.15 to 0.2 s for this
# size (measured, gloo on loopback).
LARGEST_IN_WORKERS = 256_000_000


class ClusterProblem(NamedTuple):
    """Inconsistency of the settings. `field` is the field of `Cluster` to change."""

    field: str
    message: str
    hint: str


def problems(cluster: Cluster) -> Iterator[ClusterProblem]:
    """Yield the inconsistencies of a training's cluster settings."""
    strategy, workers, servers = cluster.strategy, cluster.workers, cluster.parameter_servers
    if strategy == "local" and workers > 1:
        yield ClusterProblem(
            "strategy", f"the strategy local has one worker, not {workers}", "leave it out, or use one worker"
        )
    if cluster.max_workers and cluster.max_workers < workers:
        yield ClusterProblem(
            "max_workers",
            f"an automatic number of at most {cluster.max_workers} workers begins with {workers}",
            f"set {workers} or more, or begin with fewer",
        )
    if cluster.max_workers and (strategy in ("local", "sync") or cluster.grads_to_wait):
        reason = "one worker" if strategy == "local" else "as many gradients in each step as at its start"
        yield ClusterProblem(
            "max_workers",
            f"the strategy {strategy if strategy == 'local' else 'sync'} has {reason}, so the number of workers is not "
            "automatic",
            "use allreduce or async, or leave it out",
        )
    if strategy in ("local", "allreduce") and servers:
        yield ClusterProblem(
            "strategy", f"the strategy {strategy} has no parameter servers", "use async or sync"
        )
    not_async = strategy not in ("auto", "async") or cluster.grads_to_wait
    if cluster.local_steps > 1 and not_async:
        yield ClusterProblem("local_steps", "local steps apply to the strategy async", "leave them out")
    if cluster.max_staleness and not_async:
        yield ClusterProblem(
            "max_staleness", "a limit of staleness applies to the strategy async", "leave it out"
        )
    if cluster.durable_updates != "none" and not_async:
        yield ClusterProblem(
            "durable_updates",
            "durable updates apply to the strategy async; others go back to a checkpoint and lose no updates",
            "leave it out",
        )
    if cluster.grads_to_wait and strategy not in ("auto", "sync"):
        yield ClusterProblem(
            "grads_to_wait", "a number of gradients per step applies to the strategy sync", "leave that out"
        )


def complete_settings(cluster: Cluster, in_tables: int = 0) -> Cluster:
    """Complete the cluster settings of a training, which have no `problems`.

    `in_tables` is the size in bytes of the model's embedding rows and their slots, as far as it is known.
    """
    if cluster.max_workers and not cluster.workers:
        cluster = msgspec.structs.replace(cluster, workers=min(FIRST_WORKERS, cluster.max_workers))
    strategy = cluster.strategy if cluster.strategy != "auto" else _strategy(cluster, in_tables)
    if strategy == "local":
        return msgspec.structs.replace(cluster, strategy=strategy)
    workers = max(1, cluster.workers)
    if strategy == "allreduce":
        return msgspec.structs.replace(cluster, strategy=strategy, workers=workers)
    return msgspec.structs.replace(
        cluster,
        strategy=strategy,
        workers=workers,
        parameter_servers=cluster.parameter_servers or -(-workers // WORKERS_PER_SERVER),
        grads_to_wait=(cluster.grads_to_wait or workers) if strategy == "sync" else 0,
    )


def _strategy(cluster: Cluster, in_tables: int) -> Strategy:
    if cluster.grads_to_wait:
        return "sync"
    if cluster.parameter_servers or cluster.local_steps > 1:
        return "async"
    if cluster.durable_updates != "none" or cluster.max_staleness:
        return "async"
    if cluster.workers <= 1 and not cluster.max_workers:
        return "local"
    return "async" if in_tables > LARGEST_IN_WORKERS else "allreduce"
