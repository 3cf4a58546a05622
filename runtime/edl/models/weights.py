"""Weights as safetensors: name -> array of numbers, in a format that cannot hold code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save_file

from edl.errors import SpecError

DTYPES = frozenset({
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
})  # fmt: skip
_RESERVED = "__metadata__"
_PLACES = (":ids", ":seed")
MOST_HEADER_BYTES = 100 << 20  # the format's own limit


def save(weights: Mapping[str, np.ndarray], path: Path) -> None:
    """SpecError: an array of something else than numbers, or a name that the format reserves."""
    save_file({name: _plain(name, array) for name, array in weights.items()}, path)


def loads(data: bytes) -> dict[str, np.ndarray]:
    """The arrays in the bytes of a safetensors file, writable. SpecError: damaged."""
    try:
        return load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise SpecError(f"the weights are damaged: {error}") from None


def count(file: IO[bytes]) -> int:
    """How many numbers a safetensors file holds, from its header alone. SpecError: damaged.

    The ids and seeds of row tables (`edl.nn.rows.tables`) say where numbers are, and are not counted.
    """
    length = int.from_bytes(file.read(8), "little")
    try:
        if length > MOST_HEADER_BYTES:
            raise ValueError(f"a header of {length:,} bytes")
        header = msgspec.json.decode(file.read(length), type=dict[str, _Entry])
    except (ValueError, msgspec.MsgspecError) as error:
        raise SpecError(f"the weights are damaged: {error}") from None
    return sum(
        math.prod(entry.shape)
        for name, entry in header.items()
        if name != _RESERVED and not name.endswith(_PLACES)
    )


class _Entry(msgspec.Struct):
    """What a header says of an array; the reserved entry says nothing of one."""

    shape: tuple[int, ...] = ()


def _plain(name: str, array: np.ndarray) -> np.ndarray:
    """The array in C order and the machine's byte order, which is what the format writes."""
    if name == _RESERVED:
        raise SpecError(f"weights cannot be named {name}")
    if array.dtype.name not in DTYPES:
        raise SpecError(f"the weights {name} are of the type {array.dtype.name}, which cannot be stored")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
