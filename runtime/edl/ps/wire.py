"""Encoding of a call to a parameter server: a header and raw arrays, as one payload of a gRPC message.

    bytes 0-3       length of the head, little-endian
    bytes 4-        head: MessagePack [header struct, [[dtype, shape], …]]
    from there      each array's bytes, C order, little-endian, each at a multiple of 8 bytes from the start

gRPC carries it with identity serializers: a protobuf field of bytes would copy every array once more on each side. The
arrays of a decoded payload are read-only views of it. Only the dtypes of `_DTYPES` are permitted; nothing in a payload
can execute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from edl.errors import SpecError

Array = npt.NDArray[Any]
S = TypeVar("S", bound=msgspec.Struct)

_DTYPES: dict[str, np.dtype[Any]] = {code: np.dtype(f"<{code}") for code in ("f4", "i8", "f8", "u1")}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_ALIGNED = 8
_LENGTH = 4

_encoder = msgspec.msgpack.Encoder()


def encode(header: msgspec.Struct, arrays: Sequence[Array] = ()) -> bytes:
    """Return the payload. Raises TypeError if an array has a dtype that is not permitted."""
    parts = [np.asarray(array, order="C") for array in arrays]
    head = _encoder.encode((header, [(_code(part), part.shape) for part in parts]))
    pieces: list[Any] = [len(head).to_bytes(_LENGTH, "little"), head]
    at = _LENGTH + len(head)
    for part in parts:
        pieces += [bytes(-at % _ALIGNED), part.data if part.size else b""]
        at += -at % _ALIGNED + part.nbytes
    return b"".join(pieces)


def decode(payload: bytes, kind: type[S]) -> tuple[S, list[Array]]:
    """Return the header and the arrays. Raises SpecError if the payload is damaged."""
    try:
        length = int.from_bytes(payload[:_LENGTH], "little")
        head = memoryview(payload)[_LENGTH : _LENGTH + length]
        header, layout = msgspec.msgpack.decode(head, type=tuple[kind, list[tuple[str, tuple[int, ...]]]])  # type: ignore[valid-type]
        arrays = []
        at = _LENGTH + length
        for code, shape in layout:
            at += -at % _ALIGNED
            dtype, count = _DTYPES[code], _count(shape)
            arrays.append(
                np.frombuffer(payload, dtype, count, at).reshape(shape) if count else np.empty(shape, dtype)
            )
            at += count * dtype.itemsize
    except (msgspec.MsgspecError, KeyError, ValueError, OverflowError) as error:
        raise SpecError(f"a call to a parameter server is damaged: {error}") from None
    if at != len(payload):
        raise SpecError(f"a call to a parameter server has {len(payload):,} bytes, its header says {at:,}")
    return header, arrays


def _count(shape: tuple[int, ...]) -> int:
    if any(size < 0 for size in shape):
        raise ValueError(f"an array of shape {shape}")
    return math.prod(shape)


def _code(array: Array) -> str:
    if array.dtype not in _CODES:
        raise TypeError(f"arrays of {array.dtype} cannot be sent")
    return _CODES[array.dtype]
