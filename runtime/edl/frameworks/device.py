"""Device on which a worker computes: the CPU, or one of the GPUs that its process sees. Light to import.

The processes of a job on one machine share its GPUs by their ranks there: worker-0 takes the first, worker-1 the
second, and so on around. A GPU is first used in the process that computes, never in one that forks others.
"""

from __future__ import annotations

import os
from typing import cast, get_args

from edl.errors import JobError
from edl.logs import log
from edl.spec.job import Device, Precision

AUTO = "EDL_DEVICE"  # variable with what `auto` is on this machine: cpu or cuda
LOCAL_RANK = "EDL_LOCAL_RANK"  # variable with this process's rank among its job's on this machine
WORKER_NUMBER = "EDL_WORKER_NUMBER"  # variable with its number among all workers of the job
VISIBLE = "CUDA_VISIBLE_DEVICES"

_own_process = False
_told = set[str]()  # lines in the log of the present job


def choose(device: Device, count: int, library: str, *, with_cuda: bool) -> int | None:
    """Return the number of the GPU to use, among `count` that `library` sees, or None for the CPU.

    with_cuda: the library is built for GPUs. Raises JobError if a GPU is wanted and there is none.
    """
    if device == "auto":
        device = _of_machine()
    if device == "cpu" or (device == "auto" and not count):
        return None
    if not count:
        raise JobError(
            f"the device is cuda, and {library} sees no CUDA device",
            hint=_explain_missing_gpu(library, with_cuda),
        )
    return local_rank() % count


def _of_machine() -> Device:
    """Return the device that the environment says `auto` is. Raises JobError for another word."""
    text = os.environ.get(AUTO, "auto")
    if text not in get_args(Device):
        raise JobError(f"{AUTO} is {text!r}", hint=f"known: {', '.join(get_args(Device))}")
    return cast(Device, text)


def _explain_missing_gpu(library: str, with_cuda: bool) -> str:
    if not with_cuda:
        return f"this {library} is built without CUDA; an image has it with the build argument DEVICE=gpu"
    visible = os.environ.get(VISIBLE)
    return "check nvidia-smi" if visible is None else f"{VISIBLE} is {visible!r} here"


def local_rank() -> int:
    """Return the rank of this process among its job's processes on this machine, 0 without others."""
    return int(os.environ.get(LOCAL_RANK, "0"))


def worker_number() -> int:
    """Return the number of this worker in its job, 0 without others: 3 for worker-3, wherever it runs."""
    return int(os.environ.get(WORKER_NUMBER, "0"))


def set_ranks(instance: str, *, in_pods: bool = False) -> None:
    """Set number and rank of this process, and of processes that it starts, by the name of a worker: 3 for worker-3.

    in_pods: each worker is alone with its GPUs.
    """
    number = instance.rpartition("-")[2]
    os.environ[WORKER_NUMBER] = number if number.isdecimal() else "0"
    os.environ[LOCAL_RANK] = "0" if in_pods else os.environ[WORKER_NUMBER]


def begin(*, own_process: bool) -> None:
    """Begin a job. A process of our own logs its devices; what a user's process sees and how stays as it is."""
    global _own_process
    _own_process = own_process
    _told.clear()


def is_own_process() -> bool:
    """Return True if the settings of the framework concern nobody else."""
    return _own_process


def tell(setting: Device, device: str, precision: Precision) -> None:
    """Log the device and the precision of a model, once in a job, unless nothing but the CPU was wanted."""
    if setting == "cpu" and precision == "float32":
        return
    line = f"device: {device}" + (f", precision: {precision}" if precision != "float32" else "")
    if _own_process and line not in _told:
        _told.add(line)
        log(line)
