"""Metric states: small, and mergeable in any order.

A state is a tuple of float64 arrays; the empty tuple is the state of no rows. `dump` and `load` serialize it without
executable content.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
import numpy.typing as npt

from edl.errors import SpecError

Floats = npt.NDArray[np.float64]
State = tuple[Floats, ...]


class _Packed(msgspec.Struct, array_like=True):
    shape: tuple[int, ...]
    data: bytes  # little-endian float64, C order


def dump(state: State) -> bytes:
    """Serialize the state as MessagePack."""
    return msgspec.msgpack.encode([_Packed(array.shape, array.astype("<f8").tobytes()) for array in state])


def load(data: bytes) -> State:
    """Return the state that `dump` serialized. Raises SpecError if it is damaged."""
    try:
        packed = msgspec.msgpack.decode(data, type=list[_Packed])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"not the state of a metric: {error}") from None
    return tuple(_array(item) for item in packed)


def _array(packed: _Packed) -> Floats:
    if min(packed.shape, default=0) < 0 or len(packed.data) != 8 * math.prod(packed.shape):
        raise SpecError(f"not the state of a metric: {len(packed.data)} bytes for an array {packed.shape}")
    return np.frombuffer(packed.data, dtype="<f8").astype(np.float64).reshape(packed.shape)
