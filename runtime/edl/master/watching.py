"""Who watches a job from outside: `/metrics` for Prometheus, on a free port of this machine or a fixed one of a pod.

It is served by threads of its own; what they tell is read in the event loop. A port that cannot be had costs the
metrics, never the job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

from edl.cluster.environment import own_address, own_host
from edl.cluster.folder import ClusterFolder
from edl.cluster.snapshot import Snapshot
from edl.master.counters import CheckpointTimes
from edl.master.office import Office
from edl.master.servers import Servers

if TYPE_CHECKING:
    from edl.master.metrics import Reading

READ_SECS = 5.0  # that the event loop has to say how the job is


class Watching:
    """snapshot: the figures of the job. checkpoints: the folder that they are in. port: 0: one that is free."""

    def __init__(
        self,
        office: Office,
        servers: Servers | None,
        snapshot: Callable[[], Snapshot],
        folder: ClusterFolder,
        checkpoints: Path,
        port: int = 0,
    ) -> None:
        self._office = office
        self._servers = servers
        self._snapshot = snapshot
        self._folder = folder
        self._port = port
        self._checkpoints = checkpoints
        self._times = CheckpointTimes(self._last_cut)

    async def serve(self) -> None:
        """Begin to serve, on a fixed port or that of the master before, where it is free, and write down where."""
        loop = asyncio.get_running_loop()

        def read() -> Reading | None:
            answer: Future[Reading] = Future()
            try:
                loop.call_soon_threadsafe(lambda: answer.set_result(self._reading()))
                return answer.result(READ_SECS)
            except (RuntimeError, TimeoutError):  # the loop has ended, and the job with it
                return None

        _, _, port = self._folder.metrics().rpartition(":")
        try:
            address = await asyncio.to_thread(_serve, read, self._port or int(port or 0))
            self._folder.write_metrics(address)
        except OSError as error:
            self._office.leases.note(f"no metrics are served: {error.strerror or error}")

    def tick(self, now: float) -> None:
        """See which checkpoints there are."""
        kept = self._office.leases.kept
        begun = [cut.folder for cut in kept.cutting]
        if self._servers is not None and self._servers.cuts.under_way:
            begun.append(self._servers.cuts.under_way)
        self._times.look(begun, self._last_cut, now)

    @property
    def _last_cut(self) -> str:
        cut = self._office.leases.kept.cut
        return cut.folder if cut is not None else ""

    def _reading(self) -> Reading:
        from edl.master.metrics import Reading

        office, checkpoints = self._office, self._times.complete
        ring = office.leases.kept.rings.present
        return Reading(
            self._snapshot(),
            (ring.number, len(ring.members)) if ring is not None else None,
            self._servers.told if self._servers is not None else {},
            office.exchanges,
            (office.writes.times, office.writes.seconds),
            (checkpoints.times, checkpoints.seconds),
            self._bytes(),
        )

    def _bytes(self) -> int | None:
        """Of the last checkpoint, in files or in memory."""
        cut = self._office.leases.kept.cut
        if cut is None:
            return None
        if cut.manifest is not None:
            return sum(shard.bytes for shard in cut.manifest.shards)
        try:
            return sum(file.stat().st_size for file in (self._checkpoints / cut.folder).iterdir())
        except OSError:
            return None


def _serve(read: Callable[[], Reading | None], port: int) -> str:
    """Serve until the process ends; host:port. The libraries for it are read now, while the job goes on."""
    from prometheus_client import CollectorRegistry, start_http_server

    from edl.master.metrics import JobCollector

    registry = CollectorRegistry()
    registry.register(JobCollector(read))
    try:
        server, _ = start_http_server(port, own_host(), registry)
    except OSError:
        if not port:
            raise
        server, _ = start_http_server(0, own_host(), registry)
    return own_address(server.server_port)
