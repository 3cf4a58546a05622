"""Weights as safetensors: name -> array of numbers, in a format that cannot hold code.

They are written in pieces, because the rows of a large table arrive from its servers in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from edl.errors import SpecError

# The format's name of each type, in the order of arrays in a file: the widest first, so that all are aligned.
DTYPES = {
    "uint64": "U64", "int64": "I64", "float64": "F64", "float32": "F32", "uint32": "U32", "int32": "I32",
    "float16": "F16", "uint16": "U16", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
_RESERVED = "__metadata__"
_PLACES = (":ids", ":seed")
MOST_HEADER_BYTES = 100 << 20  # the format's own limit
_ALIGNED = 8


class Kind(NamedTuple):
    """Type and shape of an array that may not be in memory."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class WeightStream(NamedTuple):
    """Weights that are not in memory at once.

    `pieces` yields names and consecutive pieces of the arrays along their first dimension; arrays may be interleaved.
    """

    kinds: Mapping[str, Kind]
    pieces: Iterable[tuple[str, np.ndarray]]


Weights = Mapping[str, np.ndarray] | WeightStream


def save(weights: Weights, path: Path) -> None:
    """Write the weights. Raises SpecError for an array that is not numeric, or a name that the format reserves."""
    with path.open("wb") as file:
        for start, data in contents(weights):
            file.seek(start)
            file.write(data)


def contents(weights: Weights) -> Iterator[tuple[int, memoryview]]:
    """Yield the parts of a file with the weights: where each begins, and its bytes. Arrays come in the order of the
    file, pieces of a stream in any order.
    """
    stream = weights if isinstance(weights, WeightStream) else _single_pieces(weights)
    head, at = header(stream.kinds)
    left = {name: kind.bytes for name, kind in stream.kinds.items()}
    yield 0, memoryview(head)
    pieces = stream.pieces if isinstance(weights, WeightStream) else ((name, weights[name]) for name in at)
    for name, piece in pieces:
        array = np.asarray(piece, stream.kinds[name].dtype.newbyteorder("<"), order="C")
        left[name] -= array.nbytes
        if left[name] < 0:
            raise ValueError(f"the pieces of {name} exceed its shape")
        if array.size:
            yield at[name], array.reshape(-1).data.cast("B")
        at[name] += array.nbytes
    if lacking := [name for name, size in left.items() if size]:
        raise ValueError(f"the pieces of {lacking[0]} do not fill its shape")


def collect_arrays(stream: WeightStream) -> dict[str, np.ndarray]:
    """Collect the arrays of a stream in memory."""
    weights = {name: np.empty(kind.shape, kind.dtype) for name, kind in stream.kinds.items()}
    at = dict.fromkeys(weights, 0)
    for name, piece in stream.pieces:
        flat = weights[name].reshape(-1)
        flat[at[name] : at[name] + piece.size] = piece.reshape(-1)
        at[name] += piece.size
    return weights


def loads(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays in the bytes of a safetensors file, writable. Raises SpecError if they are damaged."""
    try:
        return load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise SpecError(f"the weights are damaged: {error}") from None


def count(file: IO[bytes]) -> int:
    """Return the number of values in a safetensors file, from its header alone. Raises SpecError if it is damaged.

    Ids and seeds of row tables (`edl.embeddings.model_tables`) only locate values, and are not counted.
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
    """Entry of an array in a header; the reserved entry has no shape."""

    shape: tuple[int, ...] = ()


def _single_pieces(weights: Mapping[str, np.ndarray]) -> WeightStream:
    """Return arrays as a stream with one piece each."""
    return WeightStream(
        {name: Kind(array.dtype, array.shape) for name, array in weights.items()}, weights.items()
    )


def header(
    kinds: Mapping[str, Kind], metadata: Mapping[str, str] | None = None
) -> tuple[bytes, dict[str, int]]:
    """Return the header of a file, and the offset of each array's bytes behind it: consecutive, by type and name."""
    ranks = {dtype: rank for rank, dtype in enumerate(DTYPES)}
    for name, kind in kinds.items():
        _check(name, kind)
    starts: dict[str, int] = {}
    entries: dict[str, object] = {_RESERVED: metadata} if metadata else {}
    at = 0
    for name in sorted(kinds, key=lambda name: (ranks[kinds[name].dtype.name], name)):
        kind = kinds[name]
        starts[name] = at
        at += kind.bytes
        entries[name] = {
            "dtype": DTYPES[kind.dtype.name],
            "shape": kind.shape,
            "data_offsets": (starts[name], at),
        }
    text = msgspec.json.encode(entries)
    text += b" " * (-len(text) % _ALIGNED)
    head = len(text).to_bytes(8, "little") + text
    return head, {name: start + len(head) for name, start in starts.items()}


def _check(name: str, kind: Kind) -> None:
    if name == _RESERVED:
        raise SpecError(f"weights cannot be named {name}")
    if kind.dtype.name not in DTYPES:
        raise SpecError(f"the weights {name} are of the type {kind.dtype.name}, which cannot be stored")
