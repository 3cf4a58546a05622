"""Device that a PyTorch model computes on: transfers to it and back, and its random numbers.

A model is made on the CPU and then moved, so that equal seeds give equal weights on any device. Arrays come from and go
to the memory of the CPU. A block of rows is copied to pinned memory once, from where it is transferred while the CPU
goes on; PyTorch's allocator keeps that memory until the transfer is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from edl.arrays import Array
from edl.frameworks import device as devices
from edl.frameworks.adapter import pack_arrays, unpack_arrays
from edl.spec.job import Device

CPU = torch.device("cpu")
GENERATOR, ON_DEVICE = "generator", "generator.cuda"  # states of random numbers, in a checkpoint
_CUDA_BYTES = 16  # of a state of CUDA's generator: its seed and its offset


def choose_device(setting: Device) -> torch.device:
    """Return the device of this process. Raises JobError if it has to be a GPU and there is none."""
    count = torch.cuda.device_count() if setting != "cpu" and torch.cuda.is_available() else 0
    number = devices.choose(setting, count, "PyTorch", with_cuda=torch.version.cuda is not None)
    if number is None:
        return CPU
    if devices.is_own_process():
        torch.cuda.set_device(number)  # for pinned memory, and for a program that names no device but "cuda"
        for operations in (torch.backends.cudnn.conv, torch.backends.cudnn.rnn):
            operations.fp32_precision = "ieee"  # products of matrices are exact by default
    return torch.device("cuda", number)


def describe_device(device: torch.device) -> str:
    """Return the device for a log: `cpu`, `cuda:0 (NVIDIA H100)`."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


def own_tensor(array: Array) -> torch.Tensor:
    """Return the array's memory as a tensor, or a copy if it is read-only (Arrow's is)."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def transfer_to(device: torch.device) -> Callable[[Array], torch.Tensor]:
    """Return the function that makes a tensor on the device of an array."""
    if device.type == "cpu":
        return own_tensor
    if device.type == "cuda":
        return lambda array: own_tensor(array).pin_memory().to(device, non_blocking=True)
    return lambda array: own_tensor(array).to(device)


def array_of(tensor: torch.Tensor) -> Array:
    """Return the numbers of a tensor, as a view of them if they are on the CPU."""
    values: Array = tensor.detach().cpu().numpy()
    return values


class RandomNumbers:
    """Generators of random numbers of the CPU, and of the device if that is another one."""

    def __init__(self, device: torch.device) -> None:
        self._device = device if device.type == "cuda" else None

    def state(self) -> dict[str, Array]:
        """Return copies of their states by name."""
        state = {GENERATOR: torch.get_rng_state().numpy().copy()}
        if self._device is not None:
            state[ON_DEVICE] = torch.cuda.get_rng_state(self._device).numpy().copy()
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set the states that are of these generators; a checkpoint may be of another device."""
        torch.set_rng_state(torch.from_numpy(np.array(state[GENERATOR])))
        if self._device is not None and ON_DEVICE in state:
            torch.cuda.set_rng_state(torch.from_numpy(np.array(state[ON_DEVICE])), self._device)

    def pack(self) -> bytes:
        return pack_arrays(self.state().values())

    def unpack(self, data: bytes) -> None:
        """Set the states of `pack`. Raises JobError if they are of another model."""
        state = self.state()
        size = state[GENERATOR].nbytes
        if len(data) in (size, size + _CUDA_BYTES) and (len(data) == size or self._device is None):
            data, state = data[:size], {GENERATOR: state[GENERATOR]}  # written or read without a GPU
        arrays = unpack_arrays(data, [(array.shape, array.dtype.str) for array in state.values()])
        self.set_state(dict(zip(state, arrays, strict=True)))
