"""Export of a model whose weights are on parameter servers: the rows of a table are streamed into the archive.

Each server yields its rows by ascending id. They are merged, so the archive equals the one that a single process
writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from edl.arrays import Array
from edl.embeddings.table import Floats, Ids
from edl.frameworks.adapter import GradientAdapter
from edl.models.weights import Kind, Stream
from edl.ps import messages as msg
from edl.worker.strategies.ps_client import Calls, ParameterServers, Request
from edl.worker.strategies.ps_model import Parameters

CHUNK = 65_536  # rows of one server in memory


def exported(adapter: GradientAdapter, parameters: Parameters, servers: ParameterServers) -> Stream:
    """Return the adapter's own weights and the servers' table rows. No worker may train meanwhile."""
    kinds = {}
    for spec in parameters.definition.tables:
        rows = _rows(servers, spec.name)
        kinds[f"{spec.name}:ids"] = Kind(np.dtype(np.int64), (rows,))
        kinds[f"{spec.name}:rows"] = Kind(np.dtype(np.float32), (rows, spec.dim))
        kinds[f"{spec.name}:seed"] = Kind(np.dtype(np.int64), (1,))

    def pieces() -> Iterator[tuple[str, Array]]:
        for spec in parameters.definition.tables:
            yield f"{spec.name}:seed", np.array([parameters.definition.seed], np.int64)
            for ids, rows in merged([_Shard(servers, server, spec.name) for server in range(len(servers))]):
                yield f"{spec.name}:ids", ids
                yield f"{spec.name}:rows", rows

    return with_own(adapter, Stream(kinds, pieces()))


def with_own(adapter: GradientAdapter, stream: Stream) -> Stream:
    """Return the stream, extended by the adapter's weights that are not in it."""
    own = {name: array for name, array in adapter.get_weights().items() if name not in stream.kinds}
    kinds = {name: Kind(array.dtype, array.shape) for name, array in own.items()}
    return Stream({**kinds, **stream.kinds}, itertools.chain(own.items(), stream.pieces))


def _rows(servers: ParameterServers, table: str) -> int:
    """Return the number of rows of a table on all servers."""
    header = msg.Export(servers.generation, table, limit=1)
    answers = servers.call({server: Request(header) for server in range(len(servers))}, msg.Exported)
    return sum(answer.total for answer, _ in answers.values())


class _Shard:
    """Rows of one server: one chunk in memory (`ids`, `rows`) and the next one in transit."""

    def __init__(self, servers: ParameterServers, server: int, table: str) -> None:
        self._servers = servers
        self._server = server
        self._table = table
        self._next: Calls[msg.Exported] | None = None
        self.ids: Ids = np.empty(0, np.int64)
        self.rows: Floats = np.empty((0, 1), np.float32)
        self._ask(None)
        self.advance()

    def advance(self) -> None:
        """Take the next chunk. An empty chunk marks the end."""
        self.ids = self.ids[:0]
        if self._next is None:
            return
        header, (self.ids, self.rows) = self._next.results()[self._server]
        self._next = None
        if header.more:
            self._ask(int(self.ids[-1]))

    def _ask(self, after: int | None) -> None:
        header = msg.Export(self._servers.generation, self._table, after, CHUNK)
        self._next = self._servers.begin({self._server: Request(header)}, msg.Exported)

    def take(self, last: int) -> tuple[Ids, Floats]:
        """Remove and return the rows of the chunk up to the id `last`."""
        count = int(np.searchsorted(self.ids, last, side="right"))
        found = self.ids[:count], self.rows[:count]
        self.ids, self.rows = self.ids[count:], self.rows[count:]
        if not len(self.ids):
            self.advance()
        return found


def merged(shards: list[_Shard]) -> Iterator[tuple[Ids, Floats]]:
    """Yield all rows by ascending id, at each turn those that precede every row of later chunks."""
    while shards := [shard for shard in shards if len(shard.ids)]:
        last = min(int(shard.ids[-1]) for shard in shards)
        parts = [shard.take(last) for shard in shards]
        ids = np.concatenate([ids for ids, _ in parts])
        order = np.argsort(ids)
        yield ids[order], np.concatenate([rows for _, rows in parts])[order]
