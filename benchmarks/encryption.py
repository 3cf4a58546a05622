"""Cost of mutual TLS: processor time of both ends of a call, beside that of a plain call.

The server is a process of its own, the client this one. Time of the processors depends less on what else the machine
does than that of a clock. The calls are those of `benchmarks.servers`, and one of a master, with an answer of 1 kB.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np

from benchmarks import servers
from benchmarks.serving import not_scaled
from benchmarks.table import Row
from edl import tls
from edl.master.servicer import Service, serve
from edl.master.state_loop import StateLoop
from edl.master.state_store import FileStateStore
from edl.master.tasks.task_manager import TaskManager
from edl.ps.channel import ServerChannel
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import MasterChannel
from edl.tasks.job_state import Plan
from edl.tls import issue

SECONDS = 10.0
STATUS_CALLS = 2_000
UNCOUNTED = 20


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    identity = folder / "identity"
    identity.mkdir()
    for name, content in issue().items():
        (identity / name).write_text(content, encoding="ascii")
    costs: dict[str, tuple[list[float], list[float]]] = {}
    for _ in range(rounds):
        for index, place in enumerate(("", str(identity))):
            with mock.patch.dict(os.environ, {tls.VARIABLE: place}):
                for what, cost in _round(max(rows // 2_000, 50)):
                    costs.setdefault(what, ([], []))[index].append(cost)
    return [
        Row(
            f"encryption: {what}, both ends",
            f"{1e6 * np.median(encrypted):,.0f} µs of a processor",
            [ours / theirs for ours, theirs in zip(encrypted, plain, strict=True)],
        )
        for what, (plain, encrypted) in costs.items()
    ]


def _round(calls: int) -> Iterator[tuple[str, float]]:
    """Yield each kind of call, and its processor time in seconds."""
    rng = np.random.default_rng(1)
    with servers.running(1) as addresses, servers.connected(addresses) as channels:
        for size in servers.SIZES:
            ids = servers.zipf(rng, size)
            gradients = rng.normal(size=(size, servers.DIM)).astype(np.float32)
            count = max(20, min(calls, calls * 10_000 // size))
            yield f"a pull of {size:,} rows", _cost(count, partial(_pull, channels, ids))
            push = partial(servers.push, channels, ids, gradients, f"client-{size}")
            yield f"a push of {size:,} rows", _cost(count, push)
    with _master() as address, MasterChannel(address, servers.TOKEN) as channel:
        ask = partial(channel.call, channel.stub.JobStatus, pb.JobStatusRequest(), SECONDS)
        yield "a call of the master", _cost(STATUS_CALLS, lambda _: ask())


def _pull(channels: Sequence[ServerChannel], ids: servers.Ids, _number: int) -> object:
    return servers.pull(channels, ids)


def _cost(count: int, call: Callable[[int], object]) -> float:
    """Return the processor time of a call, here and in the process that answers."""
    for number in range(1, count + UNCOUNTED + 1):
        if number == UNCOUNTED + 1:
            began = _processor_time()
        call(number)
    return (_processor_time() - began) / count


def _processor_time() -> float:
    """Return the seconds of this process and of those that it has started and that run."""
    children = (path.read_text().split() for path in Path("/proc/self/task").glob("*/children"))
    stats = [
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for each in children for pid in each
    ]
    ticks = sum(int(stat[11]) + int(stat[12]) for stat in stats)  # in its own mode and in the system's
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def _master() -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.encryption"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


async def _serve(folder: Path) -> None:
    state_loop = StateLoop(TaskManager(Plan("predict", 0)), FileStateStore(folder / "state"))
    service = Service(state_loop, lambda: bytes(1_000), not_scaled)
    server, port = await serve(service, "127.0.0.1:0", servers.TOKEN)
    print(f"127.0.0.1:{port}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(0)


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        asyncio.run(_serve(Path(scratch)))
