"""Scaler: sends start and stop requests to the cluster, in parallel for different names and in order for each name."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from edl.cluster import Cluster, Instance
from edl.errors import SQLFlowError
from edl.master.instances.slots import ScaleAction

AT_ONCE = 32
RETRY_SECS = 5.0  # time until a stop that did not reach the cluster is repeated


class Scaler:
    """Executor of scale actions; call it in the event loop. `refused` is called for instances that the cluster did not
    start.

    A stop is requested once; if it fails, it is repeated after `retry_secs`.
    """

    def __init__(
        self,
        cluster: Cluster,
        refused: Callable[[Instance, SQLFlowError], None],
        *,
        retry_secs: float = RETRY_SECS,
    ) -> None:
        self._cluster = cluster
        self._refused = refused
        self._retry_secs = retry_secs
        self._threads = ThreadPoolExecutor(AT_ONCE, "edl-orders")
        self._waiting: dict[str, deque[ScaleAction]] = {}  # pending actions by name of the instance
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, action: ScaleAction) -> None:
        """Queue the action behind earlier ones of its name; returns at once."""
        name = action.instance.name
        if name in self._waiting:
            self._waiting[name].append(action)
            return
        self._waiting[name] = deque([action])
        task = asyncio.ensure_future(self._serve(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait until all submitted actions are carried out."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def close(self) -> None:
        """Cancel the queued actions; requests in progress continue."""
        for task in self._tasks:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, name: str) -> None:
        waiting = self._waiting[name]
        while waiting:
            action = waiting.popleft()
            try:
                await asyncio.get_running_loop().run_in_executor(self._threads, self._carry_out, action)
            except SQLFlowError as error:
                if action.stop:
                    waiting.appendleft(action)
                    await asyncio.sleep(self._retry_secs)
                else:
                    self._refused(action.instance, error)
        del self._waiting[name]

    def _carry_out(self, action: ScaleAction) -> None:
        instance = action.instance
        if action.stop:
            self._cluster.stop(instance, action.grace)
        else:
            self._cluster.start(instance)
