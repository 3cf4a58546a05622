"""CPU time of the master of a job with ten thousand workers.

Two figures make it up. A simulation in which workers come, die and fall silent runs the master's state machines, event
loop, state store and status in simulated time: CPU seconds per simulated second, and exchanges per second. One client
process calls the real gRPC server, whose state machines are replaced by a fixed answer: CPU seconds of an exchange, and
of telling each member of a group the names of all.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from grpc import aio

from benchmarks.table import Row
from edl.master.servicer import Service, serve
from edl.master.state_loop import StateLoop
from edl.master.tasks.task_manager import TaskManager
from edl.rpc import codec
from edl.rpc.channel import OPTIONS, TOKEN
from edl.rpc.control_pb2_grpc import MasterStub
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Answer, Flag, Request, WorkerGroup
from edl.tasks.task import Report, Task
from tests.edl.master.simulated import MODES, Setting, SimulatedJob, job_spec

WORKERS, ROWS, SECONDS = 10_000, 10**9, 120.0
GROUP_DEATH_SECS = 300.0  # a group forms anew after each death, which takes longest
CALLS, AT_ONCE = 4000, 32
CORE = 0.5
HELD = Report(Task(3, "predict", 0, 65_536, attempt=7), 1024, 2, 1.0, 1024.0)
ROOT = Path(__file__).parent.parent


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Simulate each mode once, and measure an exchange `rounds` times. With few `rows` there are few workers."""
    workers, seconds = (WORKERS, SECONDS) if rows > 100_000 else (WORKERS // 10, SECONDS / 4)
    call = statistics.median(exchange_secs() for _ in range(rounds))
    members = tuple(f"worker-{number}" for number in range(workers))
    group = WorkerGroup(1, members, 1, "worker-0.pods:4000")
    telling = workers * exchange_secs(Answer(1, group=group), calls=workers // 10)
    found = [
        Row("an exchange with the master, CPU time of its gRPC server", f"{1e6 * call:.0f} µs"),
        Row(f"telling {workers:,} members of a new group who is in it", f"{telling:.1f} s of CPU time"),
    ]
    for mode in MODES:
        own = folder / f"scale-{mode}"
        own.mkdir()
        setting = Setting(workers)
        if mode == "allreduce":
            setting = Setting(workers, death_secs=GROUP_DEATH_SECS, freeze_secs=0.0)
            seconds *= 3
        course = SimulatedJob(job_spec(mode, ROWS, workers * 9 // 10), own, setting).run(seconds)
        cores = course.cores + course.rate * call + course.groups * telling / course.seconds
        figure = (
            f"{cores:.2f} cores: {course.cores:.2f} of state and {course.rate:.0f} exchanges per second; "
            f"{course.deaths} deaths, {course.groups} groups; state of {course.state / 1e6:.2f} MB written "
            f"{course.writes / course.seconds:.1f} times per second; snapshot of {course.shown / 1e6:.1f} MB"
        )
        found.append(Row(f"master of {workers:,} workers, {mode}", figure, value=cores, most=CORE))
    return found


def exchange_secs(answer: Answer = Answer(1), calls: int = CALLS) -> float:  # noqa: B008 (frozen)
    """Return the CPU seconds that the master's process spends per exchange, apart from its state machines."""
    return asyncio.run(_served(answer, calls))


class _Fixed(StateLoop):
    """State loop that has one answer."""

    def __init__(self, answer: Answer) -> None:
        unused: Any = None
        super().__init__(TaskManager(Plan("predict", 1)), unused)
        self._answer = answer

    async def exchange(self, request: Request, wait_secs: float, known: Flag) -> Answer:
        return self._answer


async def _served(answer: Answer, calls: int) -> float:
    unused: Any = None
    server, port = await serve(Service(_Fixed(answer), unused, unused), "127.0.0.1:0", "token")
    begun = time.process_time()
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.scale", f"127.0.0.1:{port}", str(calls), cwd=ROOT
    )
    if await client.wait():
        raise RuntimeError("the client of the benchmark failed")
    spent = time.process_time() - begun
    await server.stop(None)
    return spent / calls


async def _call(address: str, calls: int) -> None:
    """Call the server so many times, as several workers at once."""
    async with aio.insecure_channel(address, options=OPTIONS) as channel:
        stub = MasterStub(channel)  # type: ignore[no-untyped-call]  # generated

        async def work(name: str, times: int) -> None:
            for number in range(times):
                message = codec.request_to(
                    Request(name, 0, 1, held=(HELD,), number=number + 1), 0.0, Flag.NONE
                )
                await stub.Exchange(message, metadata=((TOKEN, "token"),), wait_for_ready=True)

        await asyncio.gather(
            *(
                work(f"worker-{number}", calls // AT_ONCE + (number < calls % AT_ONCE))
                for number in range(AT_ONCE)
            )
        )


if __name__ == "__main__":
    asyncio.run(_call(sys.argv[1], int(sys.argv[2])))
