"""Export of a model with its weights on parameter servers: the rows of a table are streamed into the archive.

Each server yields its rows by ascending id. They are merged, so the archive equals the one that a single process
writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from edl.arrays import Array
from edl.frameworks.adapter import GradientAdapter
from edl.models.weights import Kind, WeightStream
from edl.ps import messages as msg
from edl.ps.checkpoint.merging import CHUNK, Rows, merge_rows
from edl.worker.strategies.ps_client import ParameterServers, PendingCalls, ServerRequest
from edl.worker.strategies.ps_model import ServerParameters


def export_parameters(parameters: ServerParameters) -> WeightStream:
    """Return the adapter's own weights and the servers' table rows. No worker may train meanwhile."""
    servers = parameters.servers
    kinds = {}
    for spec in parameters.definition.tables:
        rows = _rows(servers, spec.name)
        kinds[f"{spec.name}:ids"] = Kind(np.dtype(np.int64), (rows,))
        kinds[f"{spec.name}:rows"] = Kind(np.dtype(np.float32), (rows, spec.dim))
        kinds[f"{spec.name}:seed"] = Kind(np.dtype(np.int64), (1,))

    def pieces() -> Iterator[tuple[str, Array]]:
        for spec in parameters.definition.tables:
            yield f"{spec.name}:seed", np.array([parameters.definition.seed], np.int64)
            for ids, rows in merge_rows(
                [_chunks(servers, server, spec.name) for server in range(len(servers))]
            ):
                yield f"{spec.name}:ids", ids
                yield f"{spec.name}:rows", rows

    return with_own(parameters.adapter, WeightStream(kinds, pieces()))


def with_own(adapter: GradientAdapter, stream: WeightStream) -> WeightStream:
    """Return the stream, extended by the adapter's weights that are not in it."""
    arrays = {name: array for name, array in adapter.get_weights().items() if name not in stream.kinds}
    kinds = {name: Kind(array.dtype, array.shape) for name, array in arrays.items()}
    return WeightStream({**kinds, **stream.kinds}, itertools.chain(arrays.items(), stream.pieces))


def _rows(servers: ParameterServers, table: str) -> int:
    """Return the number of rows of a table on all servers."""
    header = msg.Export(servers.generation, table, limit=1)
    answers = servers.call({server: ServerRequest(header) for server in range(len(servers))}, msg.Exported)
    return sum(answer.total for answer, _ in answers.values())


def _chunks(servers: ParameterServers, server: int, table: str) -> Iterator[Rows]:
    """Yield the rows of one server: one chunk is in memory, and the next one in transit."""

    def ask(after: int | None) -> PendingCalls[msg.Exported]:
        header = msg.Export(servers.generation, table, after, CHUNK)
        return servers.begin({server: ServerRequest(header)}, msg.Exported)

    coming: PendingCalls[msg.Exported] | None = ask(None)
    while coming is not None:
        header, (ids, rows) = coming.results()[server]
        coming = ask(int(ids[-1])) if header.more else None
        if len(ids):
            yield ids, rows
