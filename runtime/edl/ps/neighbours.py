"""Cuts in memory: each server keeps its shard, and the server after it a copy, where no disk is shared.

A shard is the bytes of its file (`edl.ps.shards`). It travels in pieces, each in a call of its own; who takes it
compares the checksum of the whole. A server that takes a lost one's place gets its shard back from the server after
it, and the shard that it is to keep a copy of from the one before it, so that any server may be lost again.
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

from edl.errors import SpecError
from edl.ps import cuts, shards
from edl.ps import messages as say
from edl.ps.channel import ServerChannel
from edl.ps.term import Start, TermCopy
from edl.ps.wire import Array

Bytes = npt.NDArray[np.uint8]
_SECONDS = 10.0  # of a call with a piece


class Held(NamedTuple):
    """A shard in memory."""

    shard: say.Shard
    data: Bytes


class _Arriving(msgspec.Struct):
    """A shard of which the first `upto` bytes are there."""

    shard: say.Shard
    data: Bytes
    upto: int = 0


class Memory:
    """The shards that one process holds, by cut and server. It outlives the terms of a server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[str, int], Held] = {}
        self._arriving: dict[tuple[str, int], _Arriving] = {}

    def put(self, cut: str, held: Held) -> None:
        with self._lock:
            self._held[cut, held.shard.index] = held

    def get(self, cut: str, index: int) -> Held | None:
        with self._lock:
            return self._held.get((cut, index))

    def add(self, cut: str, shard: say.Shard, start: int, piece: Bytes) -> None:
        """A piece has come, perhaps again. SpecError: it does not fit, or the shard is not what it should be."""
        key = cut, shard.index
        with self._lock:
            if key in self._held and self._held[key].shard == shard:
                return
            arriving = self._arriving.get(key)
            if arriving is None or arriving.shard != shard:
                arriving = self._arriving[key] = _Arriving(shard, np.empty(shard.bytes, np.uint8))
            end = start + len(piece)
            if not 0 <= start <= arriving.upto or end > shard.bytes:
                raise SpecError(f"a piece of {shard.file} of the checkpoint {cut} is out of order")
            arriving.data[start:end] = piece
            arriving.upto = max(arriving.upto, end)
            if arriving.upto < shard.bytes:
                return
            del self._arriving[key]
            if zlib.crc32(arriving.data.data) != shard.crc:
                raise SpecError(f"{shard.file} of the checkpoint {cut} came damaged")
            self._held[key] = Held(shard, arriving.data)

    def forget(self, before: str, kept: Collection[str]) -> None:
        """Cuts whose names are less than `before`, but for those."""
        with self._lock:
            for found in (self._held, self._arriving):
                for key in [key for key in found if key[0] < before and key[0] not in kept]:
                    del found[key]


class Neighbours:
    """Where one server's shards go to and come from: its memory, and the servers beside it."""

    def __init__(self, memory: Memory, token: str) -> None:
        self._memory = memory
        self._token = token

    def write(self, cut: str, copied: TermCopy) -> say.Shard:
        """Keep the shard, and have the next server keep it. ClusterError, SpecError: it does not."""
        data = np.concatenate([np.frombuffer(piece, np.uint8) for piece in shards.pieces(copied)])
        index, addresses = copied.arranged.index, copied.arranged.addresses
        shard = say.Shard(index, shards.name_of(index), len(data), zlib.crc32(data.data))
        self._memory.put(cut, Held(shard, data))
        with ServerChannel(addresses[_after(index, len(addresses))], self._token) as channel:
            for start in range(0, len(data), shards.PIECE):
                piece = data[start : start + shards.PIECE]
                channel.call(say.Keep(cut, shard, start), (piece,), say.Done, _SECONDS)
        return shard

    def restore(self, asked: say.Arrange, manifest: say.Manifest) -> Start:
        """What the server begins with. SpecError, JobError: nobody has it any more. AwayError: one does not answer."""
        servers = len(asked.addresses)
        if len(manifest.shards) != servers:
            raise SpecError(
                f"the checkpoint {asked.restore} is of {len(manifest.shards)} servers, not {servers}"
            )
        before = (asked.index - 1) % servers
        own = self._found(asked, manifest.shards[asked.index], _after(asked.index, servers))
        self._found(asked, manifest.shards[before], before)
        file = shards.ShardFile(Path(asked.restore) / own.shard.file, own.data, own.shard)
        return cuts.start_of(file, same_leases=cuts.goes_on(asked, manifest))

    def _found(self, asked: say.Arrange, shard: say.Shard, holder: int) -> Held:
        """The shard; had from `holder` where it is not here."""
        held = self._memory.get(asked.restore, shard.index)
        if held is None or held.shard != shard:
            with ServerChannel(asked.addresses[holder], self._token) as channel:
                self._fetch(channel, asked.restore, shard)
            held = self._memory.get(asked.restore, shard.index)
        if held is None:
            raise SpecError(f"{shard.file} of the checkpoint {asked.restore} is empty")
        return held

    def _fetch(self, channel: ServerChannel, cut: str, shard: say.Shard) -> None:
        start = 0
        while start < shard.bytes:
            header = say.Fetch(cut, shard.index, start)
            _, arrays = channel.call(header, (), say.Done, _SECONDS)
            piece = _piece(arrays)
            self._memory.add(cut, shard, start, piece)
            start += len(piece)

    # What the servers beside it ask -------------------------------------------------------------------------

    def keep(self, asked: say.Keep, arrays: Sequence[Array]) -> None:
        self._memory.add(asked.cut, asked.shard, asked.start, _piece(arrays))

    def piece(self, asked: say.Fetch) -> Bytes:
        """SpecError: the shard is not here, or not so long."""
        held = self._memory.get(asked.cut, asked.index)
        if held is None or not 0 <= asked.start < len(held.data):
            raise SpecError(f"{shards.name_of(asked.index)} of the checkpoint {asked.cut} is not in memory")
        return held.data[asked.start : asked.start + shards.PIECE]


def _after(index: int, servers: int) -> int:
    return (index + 1) % servers


def _piece(arrays: Sequence[Array]) -> Bytes:
    if len(arrays) != 1 or arrays[0].dtype != np.uint8 or arrays[0].ndim != 1 or not arrays[0].size:
        raise SpecError("a piece of a checkpoint is bytes")
    piece: Bytes = arrays[0]
    return piece
