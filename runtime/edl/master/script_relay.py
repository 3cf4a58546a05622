"""Files that workers of a script without a common folder give to each other, before they train together.

The address of their process group and the rows of `edl.elastic` go through the master.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import grpc

from edl.checkpoints.master_store import Keeper
from edl.errors import ClusterError
from edl.master.reporting import health
from edl.master.servicer import FileService, serve
from edl.rpc import control_pb2 as pb

READY_SECS = 20.0  # time for the port to be listened on


class _Relay(FileService):
    """Servicer before the workers train together: those that are ready for that call again."""

    async def Register(self, request: pb.RegisterRequest, context: Any) -> pb.Registration:  # noqa: N802
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the workers do not train together yet")
        raise RuntimeError  # abort has raised


@contextlib.contextmanager
def serve_relay(files: Keeper | None, token: str, address: str, probe_port: int = 0) -> Iterator[None]:
    """Answer calls of workers, and of the liveness probe if it has a port, in a thread, until they train together.

    Raises ClusterError if the address cannot be listened on.
    """
    loop = asyncio.new_event_loop()
    ready, ended, failed = threading.Event(), asyncio.Event(), list[Exception]()

    async def answer() -> None:
        try:
            server, _ = await serve(_Relay(None, files), address, token)
            probe = await health.serve(probe_port) if probe_port else None
        except (ClusterError, RuntimeError) as error:  # RuntimeError: gRPC cannot listen
            failed.append(error)
            return
        finally:
            ready.set()
        await ended.wait()
        if probe is not None:
            probe.close()
        await server.stop(0.2)

    thread = threading.Thread(target=lambda: loop.run_until_complete(answer()), name="edl-relay", daemon=True)
    thread.start()
    if not ready.wait(READY_SECS):
        failed.append(TimeoutError(f"its port is not open after {READY_SECS:g} s"))
    if failed:
        raise ClusterError(f"the master cannot answer its workers: {failed[0]}")
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
