"""The state that a member of a ring gives to the others: arrays by name, of any size together.

    names, types, shapes ─▶ piece ─▶ piece ─▶ … ─▶ the same arrays everywhere

Their bytes go one behind another, cut into pieces. Each is waited for by itself, so a large state takes its time, and a
member that is gone is known soon. Nobody needs memory for more than the arrays and a piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from edl.nn.collective import Group
from edl.nn.structure import Array

PIECE = 8 << 20  # bytes
PIECE_SECS = 4.0  # in which each is to come: members wait no longer for one that freezes meanwhile


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """An array before it is there."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def handed_over(group: Group, arrays: Mapping[str, Array] | None, source: int) -> Mapping[str, Array]:
    """The arrays that the member `source` gives; the others give None. The group's timeout is for the first word of it.

    RingError: the ring is broken.
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
        [_Entry(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    )


def _room(head: bytes) -> dict[str, Array]:
    entries = msgspec.msgpack.decode(head, type=list[_Entry])
    return {entry.name: np.empty(entry.shape, entry.dtype) for entry in entries}


def _take(group: Group, parts: list[Array], source: int) -> None:
    piece = np.empty(sum(map(len, parts)), np.uint8)
    group.fill(piece, source)
    at = 0
    for part in parts:
        part[:] = piece[at : at + len(part)]
        at += len(part)


def _cut(arrays: Iterable[Array]) -> Iterator[list[Array]]:
    """Their bytes, as the parts of each piece. A contiguous array is written through its parts."""
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
