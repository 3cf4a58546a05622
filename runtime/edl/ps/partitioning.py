"""Assignment of parameters and rows to servers. Workers and servers compute it alike, from the definition alone.

Parameters are assigned whole, the largest first, each to the least loaded server. A row is assigned by a hash of its
id; by other bits of it than the index of a `RowTable` begins with, since each server would fill only a part of its
index otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edl.embeddings.table import Floats, Ids
from edl.ps.checkpoint.content import Dense

Array = npt.NDArray[Any]


class Layout:
    """Parameters concatenated to one float32 vector."""

    def __init__(self, parameters: Iterable[Dense]) -> None:
        self.parameters = tuple(parameters)
        self._sizes = [math.prod(parameter.shape) for parameter in self.parameters]
        self.size = sum(self._sizes)

    def flat(self, values: Mapping[str, Array]) -> Floats:
        """Return the vector, (size,), of values by name."""
        vector = np.empty(self.size, np.float32)
        at = 0
        for parameter, size in zip(self.parameters, self._sizes, strict=True):
            vector[at : at + size] = np.asarray(values[parameter.name]).reshape(size)
            at += size
        return vector

    def unflat(self, vector: Floats) -> dict[str, Floats]:
        """Return the parameters by name, as views of the vector (size,)."""
        arrays = {}
        at = 0
        for parameter, size in zip(self.parameters, self._sizes, strict=True):
            arrays[parameter.name] = vector[at : at + size].reshape(parameter.shape)
            at += size
        return arrays


class Placement:
    """Assignment of parameters to servers. `names` and `sizes` are the parameters and the vector size of each."""

    def __init__(self, parameters: Sequence[Dense], servers: int) -> None:
        load = [0] * servers
        owner = {}
        for parameter in sorted(parameters, key=lambda one: (-math.prod(one.shape), one.name)):
            least = load.index(min(load))
            owner[parameter.name] = least
            load[least] += math.prod(parameter.shape)
        self._layouts = [
            Layout(parameter for parameter in parameters if owner[parameter.name] == server)
            for server in range(servers)
        ]
        self._pieces: list[list[slice]] = [[] for _ in range(servers)]  # of the vector of all parameters
        at = 0
        for one in parameters:
            start, at = at, at + math.prod(one.shape)
            self._pieces[owner[one.name]].append(slice(start, at))
        self.names = tuple(tuple(one.name for one in layout.parameters) for layout in self._layouts)
        self.sizes = tuple(load)

    def layout(self, server: int) -> Layout:
        return self._layouts[server]

    def flat(self, values: Mapping[str, Array], server: int) -> Floats:
        """Return the vector of that server, of values by name; others are ignored."""
        return self._layouts[server].flat(values)

    def unflat(self, vector: Floats, server: int) -> dict[str, Floats]:
        """Return the parameters of that server by name, as views of its vector."""
        return self._layouts[server].unflat(vector)

    def part(self, whole: Floats, server: int) -> Floats:
        """Return the vector of that server from the vector of all parameters: itself if there is one server."""
        if len(self._pieces) == 1:
            return whole
        pieces = [whole[piece] for piece in self._pieces[server]]
        return np.concatenate(pieces) if pieces else whole[:0]

    def whole(self, parts: Sequence[Floats]) -> Floats:
        """Return the vector of all parameters from the servers' vectors."""
        if len(parts) == 1:
            return parts[0]
        vector = np.empty(sum(self.sizes), np.float32)
        for part, pieces in zip(parts, self._pieces, strict=True):
            at = 0
            for piece in pieces:
                size = piece.stop - piece.start
                vector[piece] = part[at : at + size]
                at += size
        return vector


class IdPart(NamedTuple):
    """Ids of one server. `places` are their positions among all ids, int64 (n,), or a full slice if there is one
    server.
    """

    ids: Ids
    places: npt.NDArray[np.int64] | slice

    def of(self, rows: Floats) -> Floats:
        """Return the rows of these ids from the rows of all ids, (all, dim)."""
        return rows if isinstance(self.places, slice) else rows[self.places]


def split(ids: Ids, servers: int) -> list[IdPart]:
    """Split the ids by server, in their order."""
    if servers == 1:
        return [IdPart(ids, slice(None))]
    from edl.ps import kernels

    sorted_ids, places = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    ends = np.zeros(servers, np.int64)
    kernels.split(ids, sorted_ids, places, ends)
    starts = [0, *ends[:-1].tolist()]
    return [
        IdPart(sorted_ids[start:end], places[start:end])
        for start, end in zip(starts, ends.tolist(), strict=True)
    ]


def join_blocks(parts: Sequence[IdPart], blocks: Sequence[Floats]) -> Floats:
    """Join the rows of the parts in the order of the ids that were split; a single part's block is returned itself."""
    if len(parts) == 1:
        return blocks[0]
    rows = np.empty((sum(len(part.ids) for part in parts), blocks[0].shape[1]), np.float32)
    for part, block in zip(parts, blocks, strict=True):
        rows[part.places] = block
    return rows


def owned_mask(ids: Ids, server: int, servers: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the ids that belong to the server."""
    if servers == 1:
        return np.ones(len(ids), np.bool_)
    from edl.ps import kernels

    owners = np.empty(len(ids), np.int64)
    kernels.owners(ids, servers, owners)
    mine: npt.NDArray[np.bool_] = owners == server
    return mine
