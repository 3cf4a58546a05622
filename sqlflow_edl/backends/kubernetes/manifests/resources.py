"""Resource requests and limits of pods."""

from __future__ import annotations

import math

import msgspec

from edl.checkpoints.factory import with_master
from edl.cluster.kubernetes import quantities
from edl.cluster.kubernetes.names import PodRole
from edl.errors import SemanticError
from edl.spec import JobSpec
from edl.spec.runnable import RunnableSpec
from sqlflow_edl.backends.kubernetes.manifests import sizing
from sqlflow_edl.backends.kubernetes.manifests.rendering import Object
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings


def resources(settings: KubernetesSettings, spec: JobSpec | RunnableSpec, role: PodRole) -> Object:
    """Return the resources of a container; a program gets the resources of a worker.
    Raises SemanticError if a limit is below the request.
    """
    role = "worker" if role == "program" else role
    memory = settings.text(f"{role}_memory") or _memory(settings, spec, role)
    requests = {"cpu": settings.text(f"{role}_cpu"), "memory": memory}
    limits: dict[str, str] = {}
    for name, asked in requests.items():
        setting = f"{role}_{name}_limit"
        limit = settings.text(setting) or asked
        if limit == "none":
            continue
        if quantities.value(limit) < quantities.value(asked):
            raise SemanticError(
                f"kubernetes.{setting} = {limit} is less than the request of {asked}",
                hint=f"lower kubernetes.{role}_{name}, or leave the limit out",
            )
        limits[name] = limit
    if role == "master" and (disk := settings.text("master_disk")):
        requests["ephemeral-storage"] = limits["ephemeral-storage"] = disk
    if role == "worker" and (number := settings.whole("worker_gpu")):
        requests[settings.text("gpu_resource")] = limits[settings.text("gpu_resource")] = str(number)
    return {"requests": requests, "limits": limits} if limits else {"requests": requests}


def _memory(settings: KubernetesSettings, spec: JobSpec | RunnableSpec, role: PodRole) -> str:
    if isinstance(spec, RunnableSpec):
        return quantities.memory(sizing.WORKER)
    if role != "ps":
        return sizing.worker(spec)
    when = spec.checkpoints
    if not (settings.text("volume") or settings.text("checkpoints")):
        when = with_master(when, spec.cluster.parameter_servers)
    return sizing.server(msgspec.structs.replace(spec, checkpoints=when))


def threads(settings: KubernetesSettings) -> int:
    """Return the size of a worker's thread pools: the number of processors it may use."""
    limit = settings.text("worker_cpu_limit")
    processors = limit if limit not in ("", "none") else settings.text("worker_cpu")
    return max(1, math.ceil(quantities.value(processors)))
