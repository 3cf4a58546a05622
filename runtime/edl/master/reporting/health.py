"""Signs that the master's event loop runs: heartbeats to its supervisor, and the liveness probe of its pod.

Both come from the event loop itself, so that they end when it stands still, whatever the other threads do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from edl.cluster.environment import own_host
from edl.errors import ClusterError
from edl.master.backend import Backend

BEAT_SECS = 1.0  # interval of heartbeats
REQUEST_SECS = 5.0  # timeout of a probe's request
_RESPONSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
)


@contextlib.asynccontextmanager
async def life_shown(backend: Backend) -> AsyncIterator[None]:
    """Send heartbeats, and answer the probe if the backend has a port for it.

    Raises ClusterError if the port cannot be listened on.
    """
    server = await serve(backend.health_port) if backend.health_port else None
    beating = asyncio.create_task(_beat(backend))
    try:
        yield
    finally:
        beating.cancel()
        if server is not None:
            server.close()


async def _beat(backend: Backend) -> None:
    while True:
        backend.beat()
        await asyncio.sleep(BEAT_SECS)


async def serve(port: int) -> asyncio.Server:
    """Answer every HTTP request with 200. Raises ClusterError if the port cannot be listened on."""
    try:
        return await asyncio.start_server(_answer, own_host(), port)
    except OSError as error:
        raise ClusterError(f"the port {port} of the liveness probe cannot be listened on: {error}") from None


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECS)
        writer.write(_RESPONSE)
        await writer.drain()
    writer.close()
