"""Master under load: tasks per second through real RPCs with a durable state store, and calls alone.

The master runs in a process of its own. One other process simulates a thousand workers, each with an outbox
like a real worker: a call reports the tasks done since the last call, asks for more, and is a heartbeat. A
worker holds three tasks, as trainers do, so that one whose tasks are shorter than a call reports several with
it.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.table import Row

TOKEN = "benchmark"  # noqa: S105
WORKERS = 1000
ROWS = 65_536  # rows of a task
AHEAD = 3  # tasks that a worker holds


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure tasks per second, and the state machine alone with 10,000 workers and a million tasks."""
    tasks = 20_000 if rows >= 1_000_000 else 4_000
    found = [_served(folder / f"master-{number}", tasks) for number in range(rounds)]
    rate, calls_a_second = (statistics.median(figures) for figures in zip(*found, strict=True))
    calls, size, kept = _alone(10_000, 1_000_000)
    many = "master alone, 10,000 workers and 10⁶ tasks"
    return [
        Row(
            "master, 1,000 workers through RPCs",
            f"{rate:,.0f} tasks/s in {calls_a_second:,.0f} calls/s",
            value=rate,
            least=3000,
        ),
        Row(f"{many}: a call", f"{calls * 1e6:.0f} µs"),
        Row(f"{many}: memory", f"{size:,.0f} MB"),
        Row(f"{many}: state", f"{kept / 1024:,.0f} KiB"),
    ]


def _served(folder: Path, tasks: int) -> tuple[float, float]:
    folder.mkdir(parents=True)
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.serving", str(folder), str(tasks)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        port = int(server.stdout.readline())
        return asyncio.run(_work(f"127.0.0.1:{port}", tasks))
    finally:
        server.terminate()
        server.wait()


async def _work(address: str, tasks: int) -> tuple[float, float]:
    """Measure tasks and calls per second, from the moment at which all workers are registered."""
    from grpc import aio

    from edl.rpc import codec
    from edl.rpc import control_pb2 as pb
    from edl.rpc.channel import TOKEN as KEY
    from edl.rpc.control_pb2_grpc import MasterStub
    from edl.tasks.protocol import Flag
    from edl.tasks.task import Report
    from edl.worker.outbox import Outbox

    metadata = ((KEY, TOKEN),)
    calls = [0]
    async with aio.insecure_channel(address) as channel:
        stub = MasterStub(channel)  # type: ignore[no-untyped-call]
        boxes = [Outbox(f"worker-{number}", 0) for number in range(WORKERS)]

        async def register(box: Outbox) -> None:
            request = pb.RegisterRequest(instance=box.instance, incarnation=0)
            joined = codec.joined_from(await stub.Register(request, metadata=metadata))
            assert joined is not None
            box.apply_registration(joined)

        async def work(box: Outbox) -> int:
            done = 0
            while not box.flags & Flag.FINISHED:
                request = codec.request_to(box.request({"predict": AHEAD}), 5.0, box.flags)
                box.on_answer(codec.answer_from(await stub.Exchange(request, metadata=metadata)))
                calls[0] += 1
                while task := box.take("predict"):
                    box.report("done", Report(task, task.rows))
                    done += 1
            return done

        for first in range(0, WORKERS, 50):
            await asyncio.gather(*map(register, boxes[first : first + 50]))
        began = time.perf_counter()
        found = sum(await asyncio.gather(*map(work, boxes)))
        assert found == tasks
        seconds = time.perf_counter() - began
        return tasks / seconds, calls[0] / seconds


async def not_scaled(workers: int | None, servers: int | None) -> tuple[int, int]:
    """Refuse a change of instances, which no client of the benchmark asks for."""
    raise NotImplementedError


async def _serve(folder: Path, tasks: int) -> None:
    from edl.master.servicer import Service, serve
    from edl.master.state_loop import StateLoop
    from edl.master.state_store import FileStateStore
    from edl.master.tasks.task_manager import TaskManager
    from edl.tasks.job_state import Plan

    state_loop = StateLoop(
        TaskManager(Plan("predict", tasks * ROWS), lease_secs=60.0), FileStateStore(folder / "state")
    )
    server, port = await serve(Service(state_loop, lambda: b"", not_scaled), "127.0.0.1:0", TOKEN)
    print(port, flush=True)
    await state_loop.run()
    await server.wait_for_termination()


def _alone(workers: int, tasks: int) -> tuple[float, float, int]:
    """Return seconds per call, MB, and bytes of the durable state, with a task assigned to every worker."""
    from edl.master.tasks.task_manager import TaskManager
    from edl.tasks import encoding
    from edl.tasks.job_state import Plan
    from edl.tasks.task import Report
    from edl.worker.outbox import Outbox

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    leases = TaskManager(Plan("predict", tasks * ROWS))
    boxes = [Outbox(f"worker-{number}", 0) for number in range(workers)]
    for box in boxes:
        joined = leases.join(box.instance, 0, 0.0)
        assert joined is not None
        box.apply_registration(joined)
    calls = 0
    began = time.perf_counter()
    for _ in range(3):
        for box in boxes:
            box.on_answer(leases.exchange(box.request({"predict": 1}), 1.0))
            task = box.take("predict")
            assert task is not None
            if calls < 2 * workers:
                box.report("done", Report(task, task.rows))
            calls += 1
    seconds = (time.perf_counter() - began) / calls
    state, _ = leases.to_store()
    size = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return seconds, size, len(encoding.encode(state))


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
