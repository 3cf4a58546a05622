"""Factory of the strategies for jobs with parameter servers."""

from __future__ import annotations

import threading

from edl.checkpoints import CheckpointStore
from edl.frameworks.adapter import GradientAdapter
from edl.spec import Cluster
from edl.worker.strategies.ps_async import Asynchronous, LocalSteps
from edl.worker.strategies.ps_base import ServerStrategy
from edl.worker.strategies.ps_client import ParameterServers, ServerLocator
from edl.worker.strategies.ps_model import ServerParameters, Weights
from edl.worker.strategies.ps_sync import Synchronous


def on_servers(
    cluster: Cluster,
    adapter: GradientAdapter,
    source: ServerLocator,
    token: str,
    instance: tuple[str, int],
    *,
    start: Weights,
    store: CheckpointStore,
    leaving: threading.Event,
) -> ServerStrategy:
    """Return the strategy of one worker. For the parameters see `ServerParameters` and `ServerStrategy`.

    Raises JobError if servers cannot hold the model or support its optimizer.
    """
    servers = ParameterServers(source, token, leaving)
    parameters = ServerParameters(adapter, servers, *instance, start)
    if cluster.strategy == "sync":
        size, alone = cluster.grads_to_wait, cluster.workers == 1
        return Synchronous(parameters, store, size, alone=alone)
    if cluster.local_steps > 1:
        return LocalSteps(parameters, store, cluster.local_steps)
    return Asynchronous(parameters, store)
