"""Metrics server: `/metrics` for Prometheus, on a free port of the machine or a fixed one of a pod.

It serves in threads of its own; their readings are made in the event loop. A port that is in use costs the metrics,
never the job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

from edl.cluster.environment import own_address, own_host
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.snapshot import Snapshot
from edl.master.ps.ps_manager import Servers
from edl.master.reporting.counters import CheckpointTimes
from edl.master.state_loop import StateLoop

if TYPE_CHECKING:
    from edl.master.reporting.prometheus import MetricReading

READ_SECS = 5.0  # timeout of the event loop's answer


class MetricsServer:
    """Metrics endpoint of a job. `snapshot` returns the figures, `checkpoints` is their folder, and `port` 0 takes a
    free port; with None there is no endpoint.
    """

    def __init__(
        self,
        state_loop: StateLoop,
        servers: Servers | None,
        snapshot: Callable[[], Snapshot],
        folder: ClusterFolder,
        checkpoints: Path,
        port: int | None = 0,
    ) -> None:
        self._state_loop = state_loop
        self._servers = servers
        self._snapshot = snapshot
        self._folder = folder
        self._port = port
        self._checkpoints = checkpoints
        self._times = CheckpointTimes(self._last_checkpoint)

    async def serve(self) -> None:
        """Serve on the fixed port, or the previous master's if it is free; write the address to the job folder."""
        if self._port is None:
            return
        loop = asyncio.get_running_loop()

        def read() -> MetricReading | None:
            answer: Future[MetricReading] = Future()
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
            self._state_loop.tasks.log(f"no metrics are served: {error.strerror or error}")

    def tick(self, now: float) -> None:
        """Sample the checkpoints."""
        state = self._state_loop.tasks.state
        begun = [checkpoint.folder for checkpoint in state.pending_checkpoints]
        if self._servers is not None and self._servers.checkpoints.under_way:
            begun.append(self._servers.checkpoints.under_way)
        self._times.look(begun, self._last_checkpoint, now)

    @property
    def _last_checkpoint(self) -> str:
        checkpoint = self._state_loop.tasks.state.checkpoint
        return checkpoint.folder if checkpoint is not None else ""

    def _reading(self) -> MetricReading:
        from edl.master.reporting.prometheus import MetricReading

        state_loop, checkpoints = self._state_loop, self._times.complete
        group = state_loop.tasks.state.rendezvous.present
        return MetricReading(
            self._snapshot(),
            (group.number, len(group.members)) if group is not None else None,
            self._servers.all_figures if self._servers is not None else {},
            state_loop.exchanges,
            (state_loop.writes.times, state_loop.writes.seconds),
            (checkpoints.times, checkpoints.seconds),
            self._bytes(),
        )

    def _bytes(self) -> int | None:
        """Return the size of the last checkpoint in bytes, in files or in memory, or None without one."""
        checkpoint = self._state_loop.tasks.state.checkpoint
        if checkpoint is None:
            return None
        if checkpoint.manifest is not None:
            return sum(part.bytes for shard in checkpoint.manifest.shards for part in shard.parts)
        try:
            return sum(file.stat().st_size for file in (self._checkpoints / checkpoint.folder).iterdir())
        except OSError:
            return None


def _serve(read: Callable[[], MetricReading | None], port: int) -> str:
    """Serve until the process ends, and return host:port. The libraries are imported here, while the job runs."""
    from prometheus_client import CollectorRegistry, start_http_server

    from edl.master.reporting.prometheus import JobCollector

    registry = CollectorRegistry()
    registry.register(JobCollector(read))
    try:
        server, _ = start_http_server(port, own_host(), registry)
    except OSError:
        if not port:
            raise
        server, _ = start_http_server(0, own_host(), registry)
    return own_address(server.server_port)
