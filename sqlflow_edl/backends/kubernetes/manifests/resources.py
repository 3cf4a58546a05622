"""Resource requests and limits of pods; default memory from the size of the job's model and the number of copies."""

from __future__ import annotations

import math

import msgspec

from edl.checkpoints.factory import with_master
from edl.cluster.kubernetes import quantities
from edl.cluster.kubernetes.names import PodRole
from edl.embeddings.sizes import FLOAT_BYTES, table_memory
from edl.errors import SemanticError
from edl.input.cache import ROOM
from edl.spec import TREES, JobSpec
from edl.spec.runnable import RunnableSpec
from sqlflow_edl.analysis import model_size
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
        return quantities.memory(WORKER_BYTES)
    if role != "ps":
        return default_worker_memory(spec)
    when = spec.checkpoints
    if not (settings.text("volume") or settings.text("checkpoints")):
        when = with_master(when, spec.cluster.parameter_servers)
    return default_server_memory(msgspec.structs.replace(spec, checkpoints=when))


def threads(settings: KubernetesSettings) -> int:
    """Return the size of a worker's thread pools: the number of processors it may use."""
    limit = settings.text("worker_cpu_limit")
    processors = limit if limit not in ("", "none") else settings.text("worker_cpu")
    return max(1, math.ceil(quantities.value(processors)))


WORKER_BYTES = 1536 << 20  # bytes of an imported framework and of prefetched rows
SERVER_BYTES = 512 << 20
STEP_BYTES = 256 << 20  # requests are multiples of this
COPIES = 3  # of the parameters: current, being written to a checkpoint, and of the best epoch
ACTIVATIONS = 8  # times the inputs of a minibatch
ROW_COPIES = 4  # of the rows of trees: the matrix, that being made, the library's own, margins
SAMPLED = 200_000  # rows from which several workers choose the intervals of numbers
NUMBER_BYTES = 8


def default_worker_memory(spec: JobSpec) -> str:
    """Return the memory of a worker, as a quantity."""
    held = _parameter_bytes(spec)
    if spec.kind != "train":
        return _format_size(WORKER_BYTES + held + _minibatch(spec, spec.batch_size))
    if spec.framework in TREES:
        return _format_size(WORKER_BYTES + _rows_of_trees(spec))
    if spec.cluster.parameter_servers:
        held = max(0, held - table_memory(spec))
    return _format_size(
        WORKER_BYTES + COPIES * held + _minibatch(spec, spec.training.batch_size) + _cached_bytes(spec)
    )


def default_server_memory(spec: JobSpec) -> str:
    """Return the memory of a parameter server, as a quantity."""
    held = _parameter_bytes(spec) // max(1, spec.cluster.parameter_servers)
    copies = COPIES * (2 if spec.checkpoints.copies == "neighbours" else 1)
    return _format_size(SERVER_BYTES + copies * held)


def _parameter_bytes(spec: JobSpec) -> int:
    """Return the bytes of parameters, gradients and slots; of a user-defined model as far as they are known."""
    return max(model_size.memory(spec) or 0, table_memory(spec))


def _minibatch(spec: JobSpec, rows: int) -> int:
    return rows * model_size.input_width(spec) * FLOAT_BYTES * ACTIVATIONS


def _rows_of_trees(spec: JobSpec) -> int:
    """Return the bytes of the rows that a worker holds: its share of the training rows, and all validation rows."""
    workers = max(1, spec.cluster.workers)
    rows = -(-spec.rows.training // workers) + spec.rows.validation
    sample = min(SAMPLED, spec.rows.training) if workers > 1 else 0
    return (ROW_COPIES * rows + 2 * sample) * model_size.input_width(spec) * NUMBER_BYTES


def _cached_bytes(spec: JobSpec) -> int:
    """Return the bytes of rows that are cached for the next epochs."""
    again = spec.training.epochs > 1
    return min(ROOM, spec.rows.training * model_size.input_width(spec) * FLOAT_BYTES) if again else 0


def _format_size(size: int) -> str:
    return quantities.memory(-(-size // STEP_BYTES) * STEP_BYTES)
