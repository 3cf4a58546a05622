"""State transfer in an all-reduce group: one member broadcasts named arrays of any total size.

    names, types, shapes ─▶ piece ─▶ piece ─▶ … ─▶ the same arrays on every member

The bytes of all arrays are concatenated and sent in pieces, each with its own timeout. So a large state may take long,
yet a dead member is detected soon, and no member needs memory beyond the arrays and one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group

PIECE = 8 << 20  # bytes
PIECE_SECS = 4.0  # timeout of a piece, so that a frozen member is detected soon


class _TransferEntry(msgspec.Struct, frozen=True, array_like=True):
    """Header of an array."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def broadcast_arrays(group: Group, arrays: Mapping[str, Array] | None, source: int) -> Mapping[str, Array]:
    """Return the arrays of the member `source`; the other members pass None.

    The group's timeout applies to the header, PIECE_SECS to each piece. Raises GroupError if the group is broken.
    """
    head = group.broadcast(None if arrays is None else _head(arrays), source)
    if arrays is None:
        arrays = _room(head)
    patience, group.timeout = group.timeout, PIECE_SECS
    for parts in _cut(arrays.values()):
        if group.rank == source:
            group.fill(np.concatenate(parts), source)
        else:
            _take(group, parts, source)
    group.timeout = patience
    return arrays


def _head(arrays: Mapping[str, Array]) -> bytes:
    return msgspec.msgpack.encode(
        [_TransferEntry(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    )


def _room(head: bytes) -> dict[str, Array]:
    entries = msgspec.msgpack.decode(head, type=list[_TransferEntry])
    return {entry.name: np.empty(entry.shape, entry.dtype) for entry in entries}


def _take(group: Group, parts: list[Array], source: int) -> None:
    piece = np.empty(sum(map(len, parts)), np.uint8)
    group.fill(piece, source)
    at = 0
    for part in parts:
        part[:] = piece[at : at + len(part)]
        at += len(part)


def _cut(arrays: Iterable[Array]) -> Iterator[list[Array]]:
    """Yield the views of the arrays that form each piece. Writing to a view writes to its (contiguous) array."""
    parts: list[Array] = []
    room = PIECE
    for array in arrays:
        rest = array.reshape(-1).view(np.uint8)
        while len(rest):
            parts.append(rest[:room])
            rest, room = rest[room:], room - len(parts[-1])
            if not room:
                yield parts
                parts, room = [], PIECE
    if parts:
        yield parts
