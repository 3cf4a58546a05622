"""A master in a thread of the test, for task sources that talk to it over gRPC."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from grpc import aio

from edl.jobs.outcome import Outcome
from edl.master.servicer import Service, serve
from edl.master.state import MasterState
from edl.master.state_loop import StateLoop
from edl.master.state_store import FileStateStore
from edl.master.tasks.task_manager import TaskManager
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.task import Conclusion, Report, Task

T = TypeVar("T")
TOKEN = "secret of the test"  # noqa: S105
SECONDS = 30.0  # until a wait of these tests has failed


async def unscaled(workers: int | None, servers: int | None) -> tuple[int, int]:
    """Scale nothing."""
    return workers or 0, servers or 0


class Master:
    """A master in a thread; it may be stopped, and another one started at the same address."""

    def __init__(self, folder: Path, plan: Plan, *, lease_secs: float = 10.0, **how: bool) -> None:
        self._folder = folder
        self._plan = plan
        self._how: dict[str, Any] = {"lease_secs": lease_secs, **how}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.port = 0
        self.start()

    def start(self) -> None:
        self._do(self._start())

    def stop(self) -> None:
        """It dies: nothing more is written down."""
        self._do(self._stop())

    def close(self) -> None:
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def with_leases(self, do: Callable[[TaskManager], T]) -> T:
        async def work() -> T:
            result = do(self.state_loop.tasks)
            self.state_loop.notify()
            return result

        return self._do(work())

    async def _start(self) -> None:
        self._state_store = FileStateStore(self._folder / "state")
        data = self._state_store.read()
        kept = encoding.decode(data, MasterState) if data else None
        self.state_loop = StateLoop(TaskManager(self._plan, kept, **self._how), self._state_store)
        service = Service(self.state_loop, lambda: b"", unscaled)
        self._server: aio.Server
        self._server, self.port = await serve(service, f"127.0.0.1:{self.port}", TOKEN)
        self._running = asyncio.create_task(self.state_loop.run())

    async def _stop(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self._server.stop(0)
        self._state_store.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)


def done(task: Task) -> Report:
    outcome = Conclusion(outcome=Outcome("train", 0, 0.0)) if task.type == "export" else None
    concluded = Conclusion({"loss": 1.0}) if task.type == "conclude" else outcome
    return Report(task, task.rows, -(-task.rows // 512), 1.0, float(task.rows), conclusion=concluded)


def in_thread(do: Callable[[], T]) -> Future[T]:
    pool = ThreadPoolExecutor(1)
    future = pool.submit(do)
    pool.shutdown(wait=False)
    return future
