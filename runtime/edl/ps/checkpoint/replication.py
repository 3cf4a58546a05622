"""Checkpoints in memory, for jobs without a shared disk: each server keeps its shard, and the next server a copy.

A shard is the bytes of its file (`edl.ps.checkpoint.shard_file`). It is sent in pieces, one call each; the receiver
verifies the checksum of the whole. A server that replaces a lost one fetches its own shard from the next server, and
the copy that it has to keep from the previous one, so that any server may be lost again.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from edl.checkpoints.integrity import PIECE
from edl.errors import SpecError
from edl.ps import messages as msg
from edl.ps.channel import ServerChannel
from edl.ps.checkpoint import manifests, shard_file
from edl.ps.checkpoint.content import Manifest, Shard
from edl.ps.replica import ReplicaSnapshot, ReplicaStart
from edl.ps.wire import Array

Bytes = npt.NDArray[np.uint8]
_SECONDS = 10.0  # timeout of a call with a piece


class HeldShard(NamedTuple):
    """Shard in memory."""

    shard: Shard
    data: Bytes


class _PartialShard(msgspec.Struct):
    """Shard of which the first `upto` bytes have arrived."""

    shard: Shard
    data: Bytes
    upto: int = 0


class ShardCache:
    """Shards that one process holds, by checkpoint and server index. It outlives the replicas of a server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[str, int], HeldShard] = {}
        self._partial: dict[tuple[str, int], _PartialShard] = {}

    def put(self, checkpoint: str, held: HeldShard) -> None:
        with self._lock:
            self._held[checkpoint, held.shard.index] = held

    def get(self, checkpoint: str, index: int) -> HeldShard | None:
        with self._lock:
            return self._held.get((checkpoint, index))

    def add(self, checkpoint: str, shard: Shard, start: int, piece: Bytes) -> None:
        """Add a piece, possibly a repeated one. Raises SpecError if it is out of order, or the whole shard has a wrong
        checksum.
        """
        key = checkpoint, shard.index
        with self._lock:
            if key in self._held and self._held[key].shard == shard:
                return
            partial = self._partial.get(key)
            if partial is None or partial.shard != shard:
                partial = self._partial[key] = _PartialShard(shard, np.empty(shard.bytes, np.uint8))
            end = start + len(piece)
            if not 0 <= start <= partial.upto or end > shard.bytes:
                raise SpecError(f"a piece of {shard.file} of the checkpoint {checkpoint} is out of order")
            partial.data[start:end] = piece
            partial.upto = max(partial.upto, end)
            if partial.upto < shard.bytes:
                return
            del self._partial[key]
            if zlib.crc32(partial.data.data) != shard.crc:
                raise SpecError(f"{shard.file} of the checkpoint {checkpoint} arrived damaged")
            self._held[key] = HeldShard(shard, partial.data)

    def forget(self, before: str, kept: Collection[str]) -> None:
        """Drop checkpoints with names less than `before`, except the checkpoints in `kept`."""
        with self._lock:
            for table in (self._held, self._partial):
                for key in [key for key in table if key[0] < before and key[0] not in kept]:
                    del table[key]


class ShardReplication:
    """Writes and restores the shards of one server, by its own memory and the memory of the adjacent servers."""

    def __init__(self, memory: ShardCache, token: str) -> None:
        self._memory = memory
        self._token = token

    def write(self, checkpoint: str, snapshot: ReplicaSnapshot) -> Shard:
        """Keep the shard, and send a copy to the next server. Raises ClusterError or SpecError if that fails."""
        size, pieces = shard_file.contents(snapshot)
        data = np.empty(size, np.uint8)
        for at, part in pieces:
            data[at : at + len(part)] = np.frombuffer(part, np.uint8)
        index, addresses = snapshot.arranged.index, snapshot.arranged.addresses
        shard = Shard(index, shard_file.name_of(index), len(data), zlib.crc32(data.data))
        self._memory.put(checkpoint, HeldShard(shard, data))
        with ServerChannel(addresses[_next_server(index, len(addresses))], self._token) as channel:
            for start in range(0, len(data), PIECE):
                piece = data[start : start + PIECE]
                channel.call(msg.Keep(checkpoint, shard, start), (piece,), msg.Done, _SECONDS)
        return shard

    def restore(self, asked: msg.Arrange, manifest: Manifest) -> ReplicaStart:
        """Return the initial state of the server.

        Raises SpecError or JobError if no server holds the shard any more, AwayError if one does not answer.
        """
        servers = len(asked.addresses)
        if len(manifest.shards) != servers:
            raise SpecError(
                f"the checkpoint {asked.restore} was taken with {len(manifest.shards)} servers, not {servers}"
            )
        before = (asked.index - 1) % servers
        shard_here = self._found(asked, manifest.shards[asked.index], _next_server(asked.index, servers))
        self._found(asked, manifest.shards[before], before)
        (part,) = shard_here.shard.parts
        file = shard_file.ShardFile(Path(asked.restore) / part.file, shard_here.data, part)
        return manifests.start_of(
            shard_file.ShardFiles([file]), same_leases=manifests.goes_on(asked, manifest)
        )

    def _found(self, asked: msg.Arrange, shard: Shard, holder: int) -> HeldShard:
        """Return the shard, fetched from server `holder` unless it is in memory."""
        held = self._memory.get(asked.restore, shard.index)
        if held is None or held.shard != shard:
            with ServerChannel(asked.addresses[holder], self._token) as channel:
                self._fetch(channel, asked.restore, shard)
            held = self._memory.get(asked.restore, shard.index)
        if held is None:
            raise SpecError(f"{shard.file} of the checkpoint {asked.restore} is empty")
        return held

    def _fetch(self, channel: ServerChannel, checkpoint: str, shard: Shard) -> None:
        start = 0
        while start < shard.bytes:
            header = msg.Fetch(checkpoint, shard.index, start)
            _, arrays = channel.call(header, (), msg.Done, _SECONDS)
            piece = _piece(arrays)
            self._memory.add(checkpoint, shard, start, piece)
            start += len(piece)

    # Calls of the adjacent servers --------------------------------------------------------------------------

    def keep(self, asked: msg.Keep, arrays: Sequence[Array]) -> None:
        self._memory.add(asked.checkpoint, asked.shard, asked.start, _piece(arrays))

    def piece(self, asked: msg.Fetch) -> Bytes:
        """Return a piece of a shard. Raises SpecError if the shard is not in memory, or shorter."""
        held = self._memory.get(asked.checkpoint, asked.index)
        if held is None or not 0 <= asked.start < len(held.data):
            raise SpecError(
                f"{shard_file.name_of(asked.index)} of the checkpoint {asked.checkpoint} is not in memory"
            )
        return held.data[asked.start : asked.start + PIECE]


def _next_server(index: int, servers: int) -> int:
    return (index + 1) % servers


def _piece(arrays: Sequence[Array]) -> Bytes:
    if len(arrays) != 1 or arrays[0].dtype != np.uint8 or arrays[0].ndim != 1 or not arrays[0].size:
        raise SpecError("a piece of a checkpoint is one array of bytes")
    piece: Bytes = arrays[0]
    return piece
