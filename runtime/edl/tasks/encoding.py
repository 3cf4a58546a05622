"""MessagePack encoding of tasks, reports and job states, for the durable state and for byte fields of RPCs."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import numpy as np

from edl.errors import SpecError
from edl.metrics import dump, load

T = TypeVar("T")

_STATE = 1  # code of the extension that holds the state of a metric


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return msgspec.msgpack.Ext(_STATE, dump((value,)))
    raise NotImplementedError(f"a {type(value).__name__} is no part of a job's state")


def _decode(kind: type, value: Any) -> Any:
    if isinstance(value, msgspec.msgpack.Ext):
        return load(bytes(value.data))[0]
    return value


_encoder = msgspec.msgpack.Encoder(enc_hook=_encode)


def encode(value: object) -> bytes:
    return _encoder.encode(value)


def decode(data: bytes, kind: type[T]) -> T:
    """Decode `data`. Raises SpecError if the bytes are not of that kind."""
    try:
        return msgspec.msgpack.decode(data, type=kind, dec_hook=_decode)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"not a {kind.__name__}: {error}") from None
